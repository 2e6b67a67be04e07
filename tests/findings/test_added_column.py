"""A fact of findings that is added as CONTRIBUTING.md says is in every output: a field, its value, and one line."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING

import pytest

from nsysdiag.findings.facts import Finding
from tests.additions import ROOT, copied_package, edited, not_yet_added, printed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, not_yet_added("per_gap_ns" in Finding.__struct_fields__)]

FIELD = "    per_gap_ns: Ns | None = None\n"
VALUE = "        per_gap_ns=spot.lost_ns // len(facts.gaps.gap),\n"
LINE = '    fact("per_gap_ns", "Per gap"),\n'
FORMATS = ("json", "csv", "html", "md", "txt", "perfetto.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the demo's report in every format, by a package that has the fact."""
    folder = tmp_path_factory.mktemp("column")
    package = copied_package(folder)
    edited(package / "findings" / "facts.py", "    named: list[Named] = []\n", f"    named: list[Named] = []\n{FIELD}")
    variant = "        variant=_variant(facts),\n"
    edited(package / "findings" / "text.py", variant, f"{variant}{VALUE}")
    edited(package / "findings" / "show.py", 'saves_method=saves.method"),\n', f'saves_method=saves.method"),\n{LINE}')
    (folder / "demo.sqlite").write_bytes(gzip.decompress((ROOT / "nsysdiag" / "data" / "demo.sqlite.gz").read_bytes()))
    outputs = [word for suffix in FORMATS for word in ("-o", f"plain.{suffix}")]
    told = printed(package, folder, {"analyze": ["analyze", "demo.sqlite", "--details", *outputs]})
    assert told["analyze"][0] == 0, told
    return folder


def values(folder: Path) -> list[int]:
    """Of the findings that have one."""
    found = [each.get("per_gap_ns") for each in json.loads((folder / "plain.json").read_text())["findings"]]
    assert any(found)
    return [each for each in found if each is not None]


def test_tables(folder: Path) -> None:
    with (folder / "plain.findings.csv").open(encoding="utf-8", newline="") as file:
        assert [int(row["per_gap_ns"]) for row in csv.DictReader(file) if row["per_gap_ns"]] == values(folder)


def test_steps_of_contributing() -> None:
    steps = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(each.strip() in steps for each in (FIELD, VALUE, LINE))


@pytest.mark.parametrize("suffix", ["html", "md", "txt"])
def test_texts(folder: Path, suffix: str) -> None:
    text = (folder / f"plain.{suffix}").read_text(encoding="utf-8")
    label = "<dt>Per gap</dt>" if suffix == "html" else "per gap: "
    assert text.count(label) >= 1


def test_trace_events(folder: Path) -> None:
    events = json.loads((folder / "plain.perfetto.json").read_text())["traceEvents"]
    found = [each["args"]["per_gap_ns"] for each in events if "per_gap_ns" in each.get("args", {})]
    assert sorted(found) == sorted(values(folder))
