"""What the cell of a notebook shows: HTML of its own, safe with any name, without colours of its own."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from nsysdiag.document.blocks import Column as BlockColumn
from nsysdiag.document.blocks import Items, Lines, Paragraph, Table
from nsysdiag.document.columns import COUNT, TEXT
from nsysdiag.formats.notebook import MOST_BYTES, MOST_ROWS, cell, fragment
from nsysdiag.ranks.report import RankFinding
from tests.output import compare_samples, rank_samples, whatif_samples
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import HOSTILE, SAMPLES, device, finding, gap, one_device, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsysdiag.findings.facts import Finding
    from nsysdiag.ranks.report import RanksReport
    from nsysdiag.report import Report

TAGS = {
    *("div", "p", "strong", "code", "pre", "ul", "ol", "li", "blockquote", "h4", "h5", "hr"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
MOST_CELL = 60_000
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Seen(HTMLParser):
    """The tags, attributes and text of a piece of HTML. Fails where a tag is not closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles |= {value or "" for name, value in attrs if name == "style"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check(html: str) -> Seen:
    """Raise AssertionError where a piece is not small, closed in itself, inert and without colours."""
    assert len(html.encode()) < MOST_CELL
    seen = Seen(html)
    assert seen.tags <= TAGS
    assert seen.attributes <= {"style"}
    for style in seen.styles:
        assert re.search(r"url|#|rgb|hsl|expression|@", style) is None
        assert set(re.findall(r"(?:color|background):(\w+)", style)) <= {"inherit", "none"}
    assert all(each.isprintable() for each in seen.text)
    return seen


def cells(made: Report) -> Iterator[str]:
    yield made._repr_html_()
    yield from (each._repr_html_() for each in made.findings)


@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_report_and_findings(sample: str) -> None:
    made = SAMPLES[sample]()
    for html in cells(made):
        check(html)


@pytest.mark.parametrize("sample", ["bare", "mixed", "hostile", "comparison"])
def test_comparison(sample: str) -> None:
    made = getattr(compare_samples, sample)()
    assert "nsysdiag:" in check(made._repr_html_()).text


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("name", ["train.sqlite", *HOSTILE, SCRIPT])
def test_ranks(name: str) -> None:
    many = [name] * 9
    found = job(name, [finding(title=name, device=name, devices=many, nvtx=many, evidence=many, advice=many)] * 9)
    names = (name, f"{name} 1", f"{name} 2", f"{name} 3")
    for made in (found, rank_samples.ranks_report(rank_samples.comparison(names), file=name)):
        check(made._repr_html_())


def job(headline: str, findings: list[Finding]) -> RanksReport:
    """A comparison of ranks with the diagnosis and the findings of the whole job."""
    diagnosis = one_device().diagnosis
    assert diagnosis is not None
    fields = [{name: getattr(each, name) for name in each.__struct_fields__} for each in findings]
    return replace(
        rank_samples.ranks_report(),
        diagnosis=replace(diagnosis, headline=headline),
        findings=[RankFinding(**each) for each in fields],
    )


def test_what_it_says_of_ranks() -> None:
    findings = [finding(f"f-{at}", title=f"title {at}.") for at in range(9)]
    seen = check(job("Synchronization takes 40%.", findings)._repr_html_())
    for said in ("nsysdiag: ranks of train.sqlite, second.sqlite", "Synchronization takes 40%.", "title 6."):
        assert said in seen.text
    assert "title 7." not in seen.text
    assert "2 more findings." in seen.text
    assert rank_samples.SENTENCE in check(rank_samples.ranks_report()._repr_html_()).text


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["train.sqlite", *HOSTILE, SCRIPT])
def test_prediction(name: str) -> None:
    several = [whatif_samples.device(name, name) for _ in range(9)]
    for made in (
        whatif_samples.whatif(devices=several, file=name),
        whatif_samples.listing(name),
        whatif_samples.refused(name),
    ):
        check(made._repr_html_())


def test_what_it_says_of_a_prediction() -> None:
    text = check(whatif_samples.whatif()._repr_html_()).text
    assert "nsysdiag: train.sqlite" in text
    assert "Step time 34.9 → 18.9 ms predicted" in text
    assert "Waiting for input data" in check(whatif_samples.listing()._repr_html_()).text


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("name", [*HOSTILE, SCRIPT])
def test_hostile_names(name: str) -> None:
    many = [name] * 9
    bad = finding(title=name, severity=name, device=name, devices=many, nvtx=many, evidence=many, advice=many)
    bad = replace(bad, chain=many, summary=name, note=name)
    made = report([device(key=name, name=name, gaps=[gap(name=name)])], [bad] * 20, file=name)
    for html in cells(made):
        check(html)


def test_script_is_text() -> None:
    seen = check(report([device(key=SCRIPT)], [finding(title=SCRIPT)], file=SCRIPT)._repr_html_())
    assert seen.text.count("<script>alert(1)</script>") >= 3


def test_what_it_says() -> None:
    made = one_device()
    text = check(made._repr_html_()).text
    assert made.diagnosis is not None
    for said in ("nsysdiag: train.sqlite", made.diagnosis.headline, made.findings[0].title, made.trace.fingerprint):
        assert said in text
    assert made.findings[0].advice[0] in check(made.findings[0]._repr_html_()).text
    assert compare_samples.HEADLINE in check(compare_samples.comparison()._repr_html_()).text


def test_findings_that_are_not_shown_are_counted() -> None:
    made = one_device()
    many = replace(made, findings=[finding(f"f-{at}", title=f"title {at}.") for at in range(9)])
    text = check(many._repr_html_()).text
    assert "title 6." in text
    assert "title 7." not in text
    assert "2 more findings." in text


def test_report_of_an_older_version_has_its_findings() -> None:
    assert one_device().findings[0].title in check(replace(one_device(), diagnosis=None)._repr_html_()).text


class TestSize:
    def test_what_is_too_much_is_left_out_and_that_is_said(self) -> None:
        html = fragment("many", [Paragraph("ü" * 1_000) for _ in range(60)])
        assert MOST_BYTES - 4_000 < len(html.encode()) < MOST_CELL
        assert "The rest is left out" in check(html).text

    @pytest.mark.slow
    def test_one_block_that_is_too_much(self) -> None:
        for block in (Lines([SCRIPT * 90] * 99), Items([("title", [SCRIPT * 90] * 99)])):
            seen = check(fragment("title", [block, Paragraph("after")]))
            assert "The rest is left out" in seen.text
            assert "after" not in seen.text

    def test_rows_are_counted(self) -> None:
        columns = [BlockColumn("Name", TEXT, head=True), BlockColumn("Count", COUNT)]
        made = Table("Rows", columns, [(f"row {at}.", at) for at in range(MOST_ROWS + 5)])
        text = check(fragment("title", [made])).text
        assert f"row {MOST_ROWS - 1}." in text
        assert f"row {MOST_ROWS}." not in text
        assert "30 of 35 rows." in text


def test_other_records_are_not_drawn() -> None:
    other: Any = one_device().devices[0]
    assert not hasattr(other, "_repr_html_")
    with pytest.raises(TypeError):
        cell(other)
