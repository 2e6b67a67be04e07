"""Saved reports that were changed: whatever is in them, they are drawn or refused by one sentence, in little memory."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from nsysdiag import analyze, compare, saved
from nsysdiag.arrays.groups import from_text, names_from, to_text
from nsysdiag.batch.inputs import find_inputs
from nsysdiag.batch.results import read_history
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.messages import InputError, OutputError
from nsysdiag.phrases import Phrases
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json, read_document
from tests.hostile.every_table import write_every_table
from tests.hostile.reports import changed, get, kind_of_place, places, replacements, uses
from tests.levels import some
from tests.output.compare_samples import COMPARISONS
from tests.output.rank_samples import ranks_report
from tests.output.whatif_samples import WHATIFS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Told

    Command = Callable[..., Told]

ROOT = Path(__file__).parents[2]
GIB = 1 << 30


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return analyze(write_every_table(tmp_path_factory.mktemp("every") / "every.sqlite"))


@pytest.fixture
def document(report: Report) -> Any:
    return json.loads(to_json(report))


def refused(data: bytes, said: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        from_json(data, Report)


# ---- every field ------------------------------------------------------------------------------------------------


def check_every_field(content: bytes, other: Report, target: Path, part: int, *, thorough: int = 1) -> None:
    document, seen, cases = json.loads(content), set(), []
    for place in places(document):
        if kind_of_place(place) not in seen:
            seen.add(kind_of_place(place))
            cases += [(place, value) for value in replacements(get(document, place))]
    for place, value in some(cases, part, part // 2, thorough=thorough):
        target.write_bytes(changed(document, place, value))
        try:
            with suppress(InputError):
                uses(read_document(target), other)
        except Exception as error:
            raise AssertionError(f"{place} = {str(value)[:40]}") from error


@pytest.mark.thorough
def test_every_field_of_a_report(report: Report, tmp_path: Path) -> None:
    check_every_field(to_json(report), report, tmp_path / "r.json", 797, thorough=118)


@pytest.mark.thorough
def test_every_field_of_a_comparison(report: Report, tmp_path: Path) -> None:
    content = to_json(max((make() for make in COMPARISONS.values()), key=lambda each: len(each.devices)))
    check_every_field(content, report, tmp_path / "c.json", 97, thorough=29)


@pytest.mark.slow
def test_a_step_that_leads_far_below_zero(tmp_path: Path, report: Report) -> None:
    document = json.loads(to_json(COMPARISONS["mixed"]()))
    path = tmp_path / "c.json"
    path.write_bytes(changed(document, ("devices", 0, "waterfall", 0, "change_ns"), -(2**63)))
    uses(read_document(path), report)


@pytest.mark.slow
def test_every_field_of_ranks(report: Report, tmp_path: Path) -> None:
    check_every_field(to_json(ranks_report()), report, tmp_path / "ranks.json", 29, thorough=7)


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("name", WHATIFS)
def test_every_field_of_a_prediction(name: str, report: Report, tmp_path: Path) -> None:
    check_every_field(to_json(WHATIFS[name]()), report, tmp_path / "whatif.json", 11, thorough=6)


# ---- numbers ----------------------------------------------------------------------------------------------------


IMPOSSIBLE: list[tuple[Any, object]] = [
    (("devices", 0, "window", "start_ns"), 10**400),
    (("devices", 0, "window", "end_ns"), 2**63),
    (("devices", 0, "window", "parts", 0, 1), 2**62 + 1),
    (("devices", 0, "idle_ns"), -(2**63) - 1),
    (("devices", 0, "ledger", "host_compute"), 10**30),
    (("devices", 0, "gap_count"), -1),
    (("devices", 0, "gaps_packed", "count"), 10**12),
    (("devices", 0, "launch", "queue_depth", "buckets"), 10**12),
    (("devices", 0, "iterations", "packed", "each"), 0),
    (("devices", 0, "iterations", "packed", "count"), 10**12),
    (("devices", 0, "memory", "buckets"), -5),
    (("devices", 0, "coverage"), 1e300),
    (("trace", "size_bytes"), 10**20),
]


@pytest.mark.parametrize(("place", "value"), IMPOSSIBLE, ids=[".".join(map(str, place)) for place, _ in IMPOSSIBLE])
def test_a_number_that_cannot_be(place: Any, value: object, document: Any) -> None:
    refused(changed(document, place, value), "out of range|Expected `int`|numbers are packed")


@pytest.mark.slow
def test_every_command_says_so(command: Command, document: Any, tmp_path: Path) -> None:
    path, page = tmp_path / "report.json", tmp_path / "x.html"
    path.write_bytes(changed(document, *IMPOSSIBLE[0]))
    for words in (("render", path), ("analyze", "--no-config", path), ("compare", "--no-config", path, path)):
        told = command(*words, "-o", page)
        assert told.code == 3, (words, told)
        assert "is a damaged nsysdiag report: Expected `int` <= 4611686018427387904" in told.stderr
        assert not page.exists()
    assert command("batch", "--no-config", path, "-o", tmp_path / "out").code == 4


@pytest.mark.slow
def test_a_count_that_is_not_that_of_the_columns(document: Any, report: Report) -> None:
    count = report.devices[0].gaps_packed.count
    for wrong in (0, count - 1, count + 1):
        found = from_json(changed(document, ("devices", 0, "gaps_packed", "count"), wrong), Report)
        with pytest.raises(InputError, match="damaged"):
            FORMATS["html"].render(found, RenderOptions())


@pytest.mark.parametrize("text", ["1e400", "NaN", "Infinity", "-1e999", "1.5", "9" * 5000])
def test_a_number_that_is_none(text: str, document: Any, tmp_path: Path) -> None:
    place = ("devices", 0, "idle_ns")
    path = tmp_path / "report.json"
    path.write_bytes(changed(document, place, "HERE").replace(b'"HERE"', text.encode()))
    with pytest.raises(InputError, match=r"damaged|malformed"):
        read_document(path)


@pytest.mark.slow
def test_sums_beyond_64_bits(document: Any, tmp_path: Path) -> None:
    device = document["devices"][0]
    for part in device["ledger"]:
        device["ledger"][part] = device["root_ledger"][part] = 2**63 - 1
    for row in (*device["kernels"], *device["gaps"]):
        row.update({key: 2**62 - 1 for key in row if key.endswith("_ns")})
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    found = read_document(path)
    assert isinstance(found, Report)
    uses(found, found)


def test_a_key_that_is_there_twice_has_its_last_value(report: Report) -> None:
    data = to_json(report).replace(b'"recapture":', b'"recapture": 5, "recapture":', 1)
    with pytest.raises(msgspec.ValidationError, match="recapture"):
        from_json(data, Report)
    last = to_json(report).replace(b'"schema_version":', b'"schema_version": "0", "schema_version":')
    assert from_json(last, Report) == report


# ---- packed columns ---------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are those of Linux")
def test_bombs_in_every_packed_column(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(to_json(report))
    line = [sys.executable, "-m", "tests.hostile.bombs", path]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 30


def test_all_columns_of_a_document_together(document: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1 << 20
    packed = {name: base64.b64encode(zlib.compress(bytes(count * width), 9)).decode() for name, width in WIDTHS.items()}
    document["devices"][0]["gaps_packed"].update(packed, count=count, cause_ids=["sync"])
    data = json.dumps(document).encode()
    monkeypatch.setattr(saved, "UNPACKED_BYTES", 20 << 20)
    from_json(data, Report)
    document["devices"] = [document["devices"][0]] * 2
    refused(json.dumps(document).encode(), "packed columns hold more than")


WIDTHS = {"starts": 8, "lengths": 8, "causes": 1}


@pytest.mark.sampled(quick=6)
@pytest.mark.parametrize("column", ["starts", "lengths"])
@pytest.mark.parametrize("value", [b"\xff", b"\x7f", b"\0\0\0\0\0\0\0\x80"])
def test_gaps_of_impossible_times(column: str, value: bytes, document: Any, report: Report) -> None:
    gaps = document["devices"][0]["gaps_packed"]
    gaps[column] = to_text((value * 8 * gaps["count"])[: 8 * gaps["count"]], 6)
    found = from_json(json.dumps(document).encode(), Report)
    if value == b"\xff" and column == "starts":  # each starts 1 ns before the one in front of it
        uses(found, report)
        return
    with pytest.raises(InputError, match="damaged"):
        FORMATS["html"].render(found, RenderOptions())


def test_unpacks_what_is_asked_for_and_no_more() -> None:
    text = to_text(bytes(100), 6)
    assert from_text(text, 100) == bytes(100)
    for most in (99, 0, -1):
        with pytest.raises(ValueError, match="too much"):
            from_text(text, most)


@pytest.mark.parametrize("content", [b"[" * 100_000 + b"]" * 100_000, b"[1]", b'{"a": 1}', b'["a", ["b"]]', b"\xff"])
def test_names_that_are_none(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        names_from(to_text(content, 6), 1 << 20)


# ---- sizes ------------------------------------------------------------------------------------------------------


def large(path: Path, size: int) -> Path:
    """A file that starts like a saved report; it takes no room on the disk."""
    path.write_bytes(b'{"schema_version": "1", "tool": {"name": "nsysdiag", "version": "1"}, "trace": {}')
    os.truncate(path, size)
    return path


def test_a_file_larger_than_any_report(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = large(tmp_path / "report.json", 3 * GIB)

    def never(*_: object) -> None:
        raise AssertionError("all of it was read")

    monkeypatch.setattr(Path, "read_bytes", never)
    monkeypatch.setattr(saved, "SAVED_BYTES", 1 << 20)  # what is read before it is refused
    for line in (("render", path), ("analyze", "--no-config", path), ("compare", "--no-config", path, path)):
        told = command(*line, "-o", tmp_path / "x.html")
        assert told.code == 3, told
        assert "is larger than 1.00 MiB" in told.stderr
    assert not (tmp_path / "x.html").exists()


def test_in_a_folder_it_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    large(tmp_path / "in" / "report.json", 3 * GIB)
    (tmp_path / "in" / "t.sqlite").touch()
    found = find_inputs([str(tmp_path / "in")], tmp_path / "out")
    assert [each.path.name for each in found.inputs] == ["t.sqlite"]
    assert "larger than any saved report" in found.notes[0]


def test_a_history_larger_than_any(tmp_path: Path) -> None:
    path = large(tmp_path / "history.jsonl", 3 * GIB)
    with pytest.raises(OutputError, match="larger than"):
        read_history(path, tmp_path)


def test_more_values_than_any_report_holds(document: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "SAVED_VALUES", 100_000)
    document["devices"][0]["notes"] = [""] * 120_000
    refused(json.dumps(document).encode(), "more than 100,000 values")


@pytest.mark.slow
def test_a_very_long_text(document: Any) -> None:
    document["devices"][0]["verdict"]["sentence"] = "a<b> " * 2_000_000
    found = from_json(json.dumps(document).encode(), Report)
    assert FORMATS["md"].render(found, RenderOptions())


def test_names_of_many_findings_are_read_once(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of 40 findings did it 40 times for each side: the square of their number."""
    many = msgspec.structs.replace(
        report,
        findings=[msgspec.structs.replace(report.findings[0], id=f"f-sync-{number}") for number in range(40)],
    )
    read: list[Phrases] = []
    typed = Phrases.typed
    monkeypatch.setattr(Phrases, "typed", lambda phrases: read.append(phrases) or typed(phrases))
    compare(many, many)
    assert 0 < len(read) <= 4
