"""Redacted bundles: no name of the trace in any file, and a slice that says what the trace says."""

from __future__ import annotations

import gzip
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from nsysdiag import analyze, open_trace
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from nsysdiag.report import Report
from nsysdiag.share.cut import SliceCut, write_cut
from nsysdiag.share.names import Names
from nsysdiag.share.slice_names import SliceNames
from tests.builder import TraceBuilder
from tests.levels import some
from tests.share.bundle.bundling import assert_gaps_are_those_of_the_trace, contents_of
from tests.share.bundle.redacted import redacted_slice
from tests.share.bundle.test_slicing import MS, steps
from tests.share.redaction.canaries import CANARY, found, mark_names
from tests.share.redaction.test_redact import without_texts
from tests.simulator.scenarios import SCENARIOS, scenario

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "fixtures"
FIXTURES = [*FOLDER.glob("sim_*.sqlite.gz"), *some(sorted(FOLDER.glob("real_*.sqlite.gz")), 10, thorough=5)]
ALWAYS = ("starved_training", "exposed_communication", "worker_and_pin_thread")
FILES = ["findings.json", "report.html", "summary.md", "trace.sqlite"]


def in_turn(first: int) -> pytest.MarkDecorator:
    """Some scenarios, and a few always."""
    chosen = some(list(SCENARIOS), 12, first, thorough=2)
    return pytest.mark.parametrize("name", dict.fromkeys([*chosen, *ALWAYS]))


every_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name.partition(".")[0])


def assert_no_canary(trace: Path, folder: Path) -> None:
    """In the zip as it is, and in all that it holds, unpacked."""
    bundle = folder / "ticket.zip"
    assert run(app, ["bundle", str(trace), "-o", str(bundle), "--force", "--quiet", "--redact"]) == 0
    contents = contents_of(bundle)
    assert list(contents) == FILES
    for name, data in {"the zip": bundle.read_bytes(), **contents}.items():
        assert found(CANARY, data) == [], name
        assert CANARY.encode("utf-16-le") not in data, name


@pytest.mark.sampled(normal=15)
@in_turn(0)
def test_no_name_of_a_scenario_comes_through(name: str, tmp_path: Path) -> None:
    trace = tmp_path / f"train_{CANARY}.sqlite"
    scenario(name).write(trace, SCENARIOS[name].capture)
    mark_names(trace, public=False)
    assert found(CANARY, trace.read_bytes())
    assert_no_canary(trace, tmp_path)


@pytest.mark.sampled(normal=10)
@pytest.mark.fixtures
@every_fixture
def test_no_name_of_a_fixture_comes_through(fixture: Path, tmp_path: Path) -> None:
    trace = tmp_path / f"train_{CANARY}.sqlite"
    trace.write_bytes(gzip.decompress(fixture.read_bytes()))
    mark_names(trace, public=False)
    assert_no_canary(trace, tmp_path)


def full_of_names(path: Path) -> Path:
    """Forty steps, with a foreign name in every table and column that may hold one."""
    trace = steps(40, 8 * MS, schema="3.24.8").gpu().cuda_device().python_domain()
    trace.nvtx("acme", 0, None, domain=3, event_type=75)
    trace.nvtx("acme domain", 0, None, domain=4, event_type=75, interned=True)
    for step in range(40):
        start = (10 + 10 * step) * MS
        trace.nvtx("evaluate model", start, start + MS, domain=3).nvtx("mark it", start, None, domain=4, event_type=34)
        trace.python_stack(start + 2 * MS, [("load rows", "/home/acme/load.py", 7), ("&lt;module&gt;", "/a/b.py", 3)])
        trace.sample(start + 5 * MS, symbols=(("solve it", "/opt/acme/libsolve.so"), "acme main"), module="/srv/app")
        access = {"fileAccessId": 3, "threadId": 4242, "startedAt": start + MS, "endedAt": start + 8 * MS}
        trace.row("OSRT_FILE_ACCESS_EVENTS", dict(access))
    trace.row("OSRT_FILE_ACCESS_DESCRIPTORS", {"fileAccessId": 3, "filePath": "/data/acme/batch.bin"})
    return trace.thread_name("acme trainer").diagnostic("lost rows of acme").write(path)


def test_no_name_of_any_table_comes_through(tmp_path: Path) -> None:
    trace = full_of_names(tmp_path / "trace.sqlite")
    mark_names(trace, public=False)
    assert_no_canary(trace, tmp_path)


def test_no_bytes_of_a_payload_come_through(tmp_path: Path) -> None:
    """A domain that calls itself NCCL, or Python's, may still write anything into its payloads."""
    trace = steps(40, 8 * MS, schema="3.24.8").python_domain()
    trace.nvtx("NCCL", 0, None, domain=5, event_type=75)
    for domain in (5, 7):
        payload = {"start": 60 * MS, "end": 61 * MS, "eventType": 59, "domainId": domain, "globalTid": None}
        payload["globalTid"] = (1 << 48) | (4242 << 24) | 4242
        trace.row("NVTX_EVENTS", {**payload, "text": "call", "binaryData": CANARY.encode() * 20})
    path = trace.write(tmp_path / "trace.sqlite")
    assert CANARY.encode() in path.read_bytes()
    assert_no_canary(path, tmp_path)


def told(report: Report) -> object:
    """Everything but texts, and of those what was found. Only their names tell what kernels do, and which to fuse."""
    causes = [(each.cause, each.severity, each.device) for each in report.findings if each.cause != "unfused"]
    split = [(each.key, each.verdict, each.ledger, each.root_ledger) for each in report.devices]
    nameless = [msgspec.structs.replace(each, kernel_families=[]) for each in report.devices]
    return causes, split, without_texts(msgspec.to_builtins(nameless))


def assert_says_the_same(trace: Path, folder: Path) -> None:
    """A slice with other names shows the verdict of the trace; and all of the trace with other names, all numbers."""
    shown, part = redacted_slice(trace, folder)
    assert part.alike
    for pair in part.pairs:
        assert_gaps_are_those_of_the_trace(pair)
    assert sorted(each.key for each in shown.devices) == sorted(pair.full.key for pair in part.pairs)
    with open_trace(trace) as opened:
        write_cut(opened, folder / "plain.sqlite", SliceCut())
        write_cut(opened, folder / "renamed.sqlite", SliceCut(rename=SliceNames(Names()).of))
    assert told(analyze(folder / "renamed.sqlite")) == told(analyze(folder / "plain.sqlite"))


@pytest.mark.sampled(normal=11)
@in_turn(1)
def test_every_scenario_says_the_same(name: str, tmp_path: Path) -> None:
    trace = scenario(name).write(tmp_path / "trace.sqlite", SCENARIOS[name].capture)
    assert_says_the_same(trace, tmp_path / "slices")


@pytest.mark.sampled(normal=5)
@pytest.mark.fixtures
@every_fixture
def test_every_fixture_says_the_same(fixture: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.sqlite"
    trace.write_bytes(gzip.decompress(fixture.read_bytes()))
    assert_says_the_same(trace, tmp_path / "slices")


def names_in(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        ranged = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'NVTX_EVENTS'").fetchone()
        ranges = connection.execute("SELECT text FROM NVTX_EVENTS WHERE text IS NOT NULL") if ranged else ()
        return {value for (value,) in [*connection.execute("SELECT value FROM StringIds"), *ranges]}


def dotted(name: str) -> str:
    """How a slice writes a stand-in of the report."""
    return name.replace(" ", "·").replace("-", "·")


def kernels_of(report: Report) -> set[str]:
    """Without the word of those that are matrix products in single precision."""
    return {row.name.removesuffix("·sgemm") for device in report.devices for row in device.kernels}


def test_names_are_those_of_the_report(tmp_path: Path) -> None:
    """Analyzed again the slice shows the report's names, each with a dot in it."""
    trace = scenario("starved_training").write(tmp_path / "trace.sqlite", SCENARIOS["starved_training"].capture)
    shown, part = redacted_slice(trace, tmp_path / "slices")
    again = analyze(part.path)
    assert kernels_of(again)
    assert kernels_of(again) <= {dotted(name) for name in kernels_of(shown)}
    before, after = (report.devices[0].iterations for report in (shown, again))
    assert before is not None
    assert after is not None
    assert after.name == dotted(before.name)
    whole, part_of = ({(each.pid, each.tid): each.name for each in report.host.threads} for report in (shown, again))
    named = {who for who, name in part_of.items() if name}
    assert named
    assert {who: part_of[who].removesuffix("·data_loader") for who in named} == {
        who: dotted(whole[who]) for who in named
    }


@pytest.mark.parametrize(
    ("evidence", "word"),
    [
        (lambda trace, time: trace.thread_name("pt_data_worker", thread=(4242, 4300)), "thread·1·data_loader"),
        (lambda trace, time: trace.nvtx("next(dataloader)", time, time + 8 * MS), "range·1·data_loader"),
    ],
    ids=["thread", "range"],
)
def test_evidence_in_a_name_is_kept_as_a_word(evidence: object, word: str, tmp_path: Path) -> None:
    """A wait that another thread ends is a wait for input by the name of a thread or range alone."""
    trace = TraceBuilder().gpu().process()
    for step in range(40):
        begin = (10 + 10 * step) * MS
        trace.kernel(begin, begin + MS, launch=(begin - 20_000, begin - 10_000))
        trace.osrt("pthread_cond_wait", begin + MS, begin + 9 * MS)
        trace.osrt("pthread_cond_signal", begin + 9 * MS - 10_000, begin + 9 * MS - 5_000, thread=(4242, 4300))
        evidence(trace, begin + MS)  # type: ignore[operator]
    source = trace.write(tmp_path / "trace.sqlite")
    _, part = redacted_slice(source, tmp_path / "slices")
    assert word in names_in(part.path)
    assert part.alike
    assert "data_loading" in part.pairs[0].full.root_ledger
    assert part.pairs[0].part is not None
    assert "data_loading" in part.pairs[0].part.root_ledger


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    trace = full_of_names(tmp_path / "trace.sqlite")
    for name in ("a.zip", "b.zip"):
        assert run(app, ["bundle", str(trace), "-o", str(tmp_path / name), "--redact", "--quiet"]) == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "a.zip").testzip() is None
