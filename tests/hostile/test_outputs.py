"""All the way from names in a trace to every format: each stays a document of its kind, and no name acts in it. And
outputs in folders where others may write."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from nsysdiag import Report, analyze
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import tables
from tests.builder import TraceBuilder
from tests.hostile.checks import CONTROL
from tests.output.samples import HOSTILE
from tests.trace.files import listing, small_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Told

    Command = Callable[..., Told]

NAMES = (*HOSTILE, "::error file=x::y", "%0A::warning::z", "\x0b\x0c\ufffe\uffff", "a\u2028b", '"\\\n# EOF\nx 1')
XML_FORBIDS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
ELEMENTS = re.compile(r"<(script>alert|img|svg/onload|iframe)", re.IGNORECASE)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Of a trace whose every name is one of NAMES: kernels, ranges, threads, processes, GPU, calls, functions."""
    trace = TraceBuilder(schema="3.24.8").process(name="".join(NAMES[:9])).gpu(name="".join(NAMES))
    trace.cuda_device(0, 0).thread_name(NAMES[2])
    for number, name in enumerate(NAMES):
        at = 1_000_000 * (number + 1)
        trace.nvtx(name, at, at + 900_000)
        trace.osrt(name, at + 200_000, at + 600_000, chain=[name, (name, name)])
        trace.sample(at + 100_000, symbols=[name, "main"])
        trace.kernel(at + 700_000, at + 750_000, name=name, demangled=name, launch=(at + 650_000, at + 660_000))
        trace.diagnostic(f"lost {name}")
    return analyze(trace.write(tmp_path_factory.mktemp("named") / "trace <b>=1.sqlite"))


def drawn(report: Report, name: str) -> str:
    return FORMATS[name].render(report, RenderOptions(source="<b>\x1b[31m", command="nsysdiag analyze '<b>'")).decode()


@pytest.mark.slow
def test_the_names_are_in_it(report: Report) -> None:
    assert len(report.devices[0].kernels) == len(set(NAMES))
    assert {"<img src=x onerror=alert(1)>", "::error file=x::y"} <= {row.name for row in report.devices[0].kernels}


@pytest.mark.parametrize("name", ["json", "perfetto", "sarif"])
def test_json(name: str, report: Report) -> None:
    text = drawn(report, name)
    assert json.loads(text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)


def test_junit(report: Report) -> None:
    text = drawn(report, "junit")
    assert not XML_FORBIDS.search(text)
    assert {each.tag for each in ElementTree.fromstring(text).iter()} <= {
        *(
            "testsuites",
            "testsuite",
            "testcase",
            "properties",
            "property",
            "system-out",
            "system-err",
            "failure",
            "skipped",
            "error",
        )
    }


def test_csv(report: Report) -> None:
    for data in tables(report).values():
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
        assert len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows[1:] for cell in row):
            assert not CONTROL.search(cell)
            assert cell[:1] not in set("=+@\t\r") or re.fullmatch(r"[+]?[\d.]+", cell), cell
            assert cell[:1] != "-" or re.fullmatch(r"-[\d.]+", cell), cell


def test_openmetrics(report: Report) -> None:
    text = drawn(report, "prom")
    families = list(text_string_to_metric_families(text))
    assert families
    assert all(family.name.startswith("nsysdiag_") for family in families)
    assert text.count("\n# EOF") == 1


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["md", "html"])
def test_markup(name: str, report: Report) -> None:
    text = drawn(report, name)
    shown = text if name == "html" else re.sub(r"`+[^`\n]*`+", "", text)
    assert not ELEMENTS.search(shown.replace("\\<", ""))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)


def test_text(report: Report) -> None:
    assert not CONTROL.search(drawn(report, "txt"))


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
class TestPlantedLinks:
    """In a shared folder others may have put links where results will be written."""

    @pytest.mark.slow
    def test_no_output_follows_one(self, command: Command, tmp_path: Path) -> None:
        trace, shared = small_trace(tmp_path / "t.sqlite"), tmp_path / "shared"
        shared.mkdir()
        for number, known in enumerate(FORMATS.values()):
            victim = tmp_path / f"victim-{number}"
            victim.write_bytes(b"precious")
            link = shared / f"out{known.suffix}"
            link.symlink_to(victim)
            told = command("analyze", "--no-config", trace, "-o", link)
            assert told.code == 2, told
            assert "symbolic link" in told.stderr
            assert victim.read_bytes() == b"precious"

    def test_nor_does_a_table_beside_one(self, command: Command, tmp_path: Path) -> None:
        trace, victim = small_trace(tmp_path / "t.sqlite"), tmp_path / "victim"
        victim.write_bytes(b"precious")
        (tmp_path / "out.ledger.csv").symlink_to(victim)
        assert command("analyze", "--no-config", trace, "-o", tmp_path / "out.csv").code == 2
        assert victim.read_bytes() == b"precious"

    @pytest.mark.parametrize("words", [("bundle", "{}", "-o", "x.zip"), ("analyze", "--no-config", "{}")])
    def test_nor_other_commands(self, words: tuple[str, ...], command: Command, tmp_path: Path) -> None:
        trace, victim = small_trace(tmp_path / "t.sqlite"), tmp_path / "victim"
        victim.write_bytes(b"precious")
        for name in ("x.zip", "t.nsysdiag.html"):
            Path(name).symlink_to(victim)
        assert command(*(word.replace("{}", str(trace)) for word in words)).code == 2
        assert victim.read_bytes() == b"precious"

    def test_nor_the_files_of_a_batch(self, command: Command, tmp_path: Path) -> None:
        trace, victim, out = small_trace(tmp_path / "t.sqlite"), tmp_path / "victim", tmp_path / "out"
        victim.write_bytes(b"precious")
        out.mkdir()
        for name in ("summary.json", "index.html", "t.html", "junit.xml"):
            (out / name).symlink_to(victim)
        assert command("batch", "--no-config", trace, "-o", out).code == 2
        assert victim.read_bytes() == b"precious"

    def test_nor_a_history(self, command: Command, tmp_path: Path) -> None:
        trace, victim = small_trace(tmp_path / "t.sqlite"), tmp_path / "victim"
        victim.write_bytes(b"precious")
        (tmp_path / "trend.jsonl").symlink_to(victim)
        told = command("batch", "--no-config", trace, "-o", tmp_path / "out", "--history", tmp_path / "trend.jsonl")
        assert told.code == 2
        assert victim.read_bytes() == b"precious"

    def test_the_trace_itself_is_no_output(self, command: Command, tmp_path: Path) -> None:
        trace = small_trace(tmp_path / "t.html")
        before = listing(tmp_path)
        assert command("analyze", "--no-config", trace, "-o", trace, "--force").code == 2
        assert listing(tmp_path) == before
