"""The page in a real browser: scripts run under their own policy, and nobody complains."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.ranks.show.registry import RENDERERS
from nsysdiag.replay.show.blocks import RENDERERS as PREDICTIONS
from tests.output.browser import Browser, Chromium
from tests.output.page import Element, parse
from tests.output.rank_samples import ranks_report
from tests.output.samples import SAMPLES
from tests.output.whatif_samples import WHATIFS

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def visit(chromium: Chromium, page: bytes, folder: Path) -> tuple[Element, list[str]]:
    """The page's elements after its scripts have run, and what was written to the console."""
    (folder / "page.html").write_bytes(page)
    with Browser(chromium) as browser:
        browser.open((folder / "page.html").as_uri())
        browser.value("new Promise((done) => setTimeout(() => requestIdleCallback(() => done()), 100))")
        root = parse(browser.value("document.documentElement.outerHTML").encode())
        return root, browser.console


@pytest.mark.thorough
@pytest.mark.parametrize("sample", ["one_device", "hostile", "no_device"])
def test_scripts_run_without_complaint(sample: str, chromium: Chromium, tmp_path: Path) -> None:
    root, console = visit(chromium, FORMATS["html"].render(SAMPLES[sample](), RenderOptions()), tmp_path)
    assert console == []
    assert root.all("html")[0].attributes["class"] == "js"
    theme = next(button for button in root.all("button") if button.attributes.get("class") == "theme")
    assert theme.text in ("Light theme", "Dark theme")
    assert "hidden" not in theme.attributes


def test_long_tables_are_folded_and_can_be_sorted(chromium: Chromium, tmp_path: Path) -> None:
    page = FORMATS["html"].render(SAMPLES["long_lists"](), RenderOptions())
    root, console = visit(chromium, page, tmp_path)
    assert console == []
    table = next(table for table in root.all("table") if "gaps" in table.attributes["class"])
    records = table.all("tbody")
    assert len(records) == 60
    assert sum("hidden" not in record.attributes for record in records) == 20
    assert all(header.all("button") for header in table.all("thead")[0].all("th"))


def test_a_foreign_script_is_refused_and_noticed(chromium: Chromium, tmp_path: Path) -> None:
    page = FORMATS["html"].render(SAMPLES["one_device"](), RenderOptions())
    forged = page.replace(b"</main>", b"<script>document.title = 'taken'</script></main>")
    root, console = visit(chromium, forged, tmp_path)
    assert root.all("title")[0].text != "taken"
    assert re.search("Content Security Policy", "".join(console))


@pytest.mark.thorough
def test_a_filter_leaves_the_other_tables_of_its_section_alone(chromium: Chromium, tmp_path: Path) -> None:
    root, console = visit(chromium, FORMATS["html"].render(SAMPLES["hostile"](), RenderOptions()), tmp_path)
    assert console == []
    whole = [table for table in root.all("table") if "data-first" not in table.attributes]
    assert "Collectives by kind" in "".join(table.all("caption")[0].text for table in whole)
    assert [record for table in whole for record in table.all("tbody") if "hidden" in record.attributes] == []


WIDTHS = """[...document.querySelectorAll(".finding")].map((finding) => [".title", ".lost"].map(
    (part) => finding.querySelector(part).getBoundingClientRect().width))"""


def test_titles_of_findings_have_room_beside_long_savings(
    demo: nsysdiag.Report, chromium: Chromium, tmp_path: Path
) -> None:
    """Where the trace cannot tell how much is saved, the figure is a sentence."""
    assert any(each.saves and each.saves.cannot_tell for each in demo.findings)
    (tmp_path / "page.html").write_bytes(FORMATS["html"].render(demo, RenderOptions()))
    with Browser(chromium) as browser:
        browser.open((tmp_path / "page.html").as_uri())
        widths = browser.value(WIDTHS)
    assert len(widths) >= 3
    assert [each for each in widths if each[0] < each[1]] == []


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("sample", WHATIFS)
def test_predictions_complain_of_nothing(sample: str, chromium: Chromium, tmp_path: Path) -> None:
    _root, console = visit(chromium, PREDICTIONS["html"](WHATIFS[sample](), RenderOptions()), tmp_path)
    assert console == []


def test_ranks_need_no_script_and_complain_of_none(chromium: Chromium, tmp_path: Path) -> None:
    root, console = visit(chromium, RENDERERS["html"](ranks_report(), RenderOptions()), tmp_path)
    assert console == []
    assert [len(table.all("tbody")) for table in root.all("table")] == [4, 1, 4, 1, 2]
