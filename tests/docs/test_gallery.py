"""The gallery: an entry for each bottleneck, and sentences that say what their reports say."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from typer.testing import CliRunner

from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.cli.app import app
from nsysdiag.diagnosis.facts import Saves
from nsysdiag.units import format_share
from scripts._gallery.__main__ import real_exports
from scripts._gallery.entries import ENTRIES, Entry
from scripts._gallery.page import HEADING, linked
from scripts._gallery.real import attributions, exports
from tests.docs.pages import page, section

if TYPE_CHECKING:
    from pathlib import Path

NEVER_FIRST = {"profiler"}
"""A bottleneck that no headline names."""
SENTENCES = re.compile(r"^\* \*\*(First screen|Evidence|Fix)\.\*\* (.+(?:\n  .+)*)", re.MULTILINE)
NUMBER = re.compile(r"\d[\d.,]*(?: to \d[\d.]*)? ?(?:%|ms\b|µs\b|ns\b|s\b|MB\b|MiB\b|GB/s|×)(?: \d[\d.]* ms)?")
"""With its unit, as reports write them."""
README = """
| file | GPU | from, licence |
|---|---|---|
| acme_solver-before / -after | H100, 2 ranks | acme/traces, MIT |
| acme_other | T4 | same |
| folder_pqtdir/ | T4 | else/where, BSD |
"""


def sentences(entry: Entry) -> dict[str, str]:
    """Those of an entry's section: by what they are about, each on one line."""
    heading = next(heading for heading, name in HEADING.findall(page("gallery.md")) if name == entry.name)
    return {part: re.sub(r"\s+", " ", text) for part, text in SENTENCES.findall(section(page("gallery.md"), heading))}


class Made(NamedTuple):
    """A report: its JSON, and all that it says in words."""

    saved: dict[str, Any]
    text: str


@pytest.fixture
def made(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.chdir(tmp_path)
    outputs = [tmp_path / "report.json", tmp_path / "report.html"]
    written = [word for path in outputs for word in ("-o", str(path))]
    result = CliRunner().invoke(app, [*entry.arguments(entry.traces(tmp_path)), *written, "--quiet"])
    assert result.exit_code == 0, result.output
    return Made(json.loads(outputs[0].read_bytes()), words_of(outputs[1]))


def words_of(path: Path) -> str:
    """What a page says, on one line."""
    content = re.sub(r"<(script|style)\b.*?</\1>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", content)))


def test_every_bottleneck_has_an_entry() -> None:
    assert {entry.bottleneck for entry in ENTRIES} - {None} == set(BOTTLENECK_IDS) - NEVER_FIRST
    assert [entry.command for entry in ENTRIES].count("compare") == 2
    assert {entry.command for entry in ENTRIES} == {"analyze", "compare", "whatif", "ranks"}


def test_every_entry_has_a_section() -> None:
    assert [name for _, name in HEADING.findall(page("gallery.md"))] == [entry.name for entry in ENTRIES]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_has_three_short_sentences(entry: Entry) -> None:
    said = sentences(entry)
    assert list(said) == ["First screen", "Evidence", "Fix"]
    assert [text for text in said.values() if len(text.split()) > 35] == []


def test_numbers_are_seen() -> None:
    said = "At 3 GB/s, 1,439 calls take 14.4 ms: 53 to 54% of 2.5 s, 2.55× as long, 60 × 20.0 ms, in 3 of 4."
    assert NUMBER.findall(said) == ["3 GB/s", "14.4 ms", "53 to 54%", "2.5 s", "2.55×", "60 × 20.0 ms"]


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_sentences_say_what_the_report_says(entry: Entry, made: Made) -> None:
    said = sentences(entry)
    numbers = [number for text in said.values() for number in NUMBER.findall(text)]
    assert len(numbers) >= 2
    assert [number for number in numbers if number not in made.text] == []
    if entry.bottleneck:
        diagnosis, first = made.saved["diagnosis"], made.saved["findings"][0]
        assert diagnosis["bottleneck"] == entry.bottleneck
        assert format_share(diagnosis["share"], 1) in said["First screen"]
        assert f"`{first['cause']}`" in said["Fix"]
        assert figure(diagnosis["saves"]) in said["Fix"]


def figure(saves: dict[str, Any] | None) -> str:
    """How much the first fix saves, where the report promises anything."""
    return Saves(**saves).figure if saves else ""


def test_the_site_gets_links_to_reports_and_causes() -> None:
    text = linked(page("gallery.md"))
    assert [entry.name for entry in ENTRIES if f"](gallery/{entry.name}.html)" not in text] == []
    assert "[`data_loading`](causes/data_loading.md)" in text
    assert "[`late_rank`](findings/late_rank.md)" in text


def test_each_real_export_has_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("acme_other_t4", "acme_solver-after_h100", "acme_solver-before_h100", "unknown"):
        (tmp_path / f"{name}.sqlite").touch()
    assert exports(tmp_path) == []
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    capsys.readouterr()
    assert [each.source for each in exports(tmp_path)] == ["acme/traces, MIT"] * 3
    assert capsys.readouterr().err == "unknown.sqlite: no source in README.md, left out\n"
    assert attributions(README)["folder_pqtdir"] == "else/where, BSD"


def test_without_real_exports_there_is_no_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NSYSDIAG_TRACES", raising=False)
    assert real_exports(tmp_path) == ""


@pytest.mark.thorough
@pytest.mark.checkout
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_site_has_the_report(site: Path, entry: Entry) -> None:
    assert f'href="gallery/{entry.name}.html"' in (site / "gallery.html").read_text(encoding="utf-8")
    text = words_of(site / "gallery" / f"{entry.name}.html")
    numbers = [number for sentence in sentences(entry).values() for number in NUMBER.findall(sentence)]
    assert [number for number in numbers if number not in text] == []


@pytest.mark.thorough
@pytest.mark.checkout
def test_the_site_stays_small(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 40 * 2**20
