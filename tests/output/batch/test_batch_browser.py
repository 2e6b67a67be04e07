"""The pages of a batch in a real browser: no complaint, complete without scripts, fit for every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.batch.results import write_all
from tests.conftest import AXE
from tests.levels import some
from tests.output.batch_samples import BATCHES, CAUSES, HISTORIES
from tests.output.browser import Chromium
from tests.output.reader import Reader
from tests.output.test_axe import ALL_RULES, COLOURS, violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = [
    *((sample, "index.html") for sample in BATCHES),
    *((sample, "trend.html") for sample in BATCHES if HISTORIES[sample]()),
]
every_page = pytest.mark.parametrize(("sample", "page"), some(PAGES, 4))
WIDE = "document.documentElement.scrollWidth"
OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
COLLAPSED = """
Array.from(document.querySelectorAll('section, table, svg.stack, svg.spark, svg.bar-chart'))
  .filter((each) => each.getBoundingClientRect().height === 0).length
"""
CLIPPED = """
Array.from(document.querySelectorAll('.scroll')).filter((each) => each.scrollWidth > each.clientWidth + 1).length
"""
FIRST = "Array.from(document.querySelectorAll('#traces tbody')).filter((each) => !each.hidden)[0].rows[0].cells"


def reader(chromium: Chromium, folder: Path, sample: str, page: str, *, scripts: bool = True) -> Reader:
    made = Reader(chromium, width=1440, scripts=scripts)
    for name, data in write_all(BATCHES[sample](), HISTORIES[sample](), CAUSES).items():
        (folder / name).write_bytes(data)
    made.file = folder / page
    return made


@every_page
def test_nothing_complains_and_nothing_is_wider_than_the_window(
    sample: str, page: str, chromium: Chromium, tmp_path: Path
) -> None:
    with reader(chromium, tmp_path, sample, page) as shown:
        shown.start()
        shown.value(OPEN)
        for width in (1440, 800, 390):
            shown.size(width, 1000)
            assert shown.value(WIDE) <= width
        assert shown.console == []
        assert shown.requests == [shown.file.as_uri()]


def test_the_table_fits_a_wide_window(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "good", "index.html") as shown:
        shown.start()
        assert shown.value(CLIPPED) == 0


@every_page
def test_all_of_it_is_there_without_scripts(sample: str, page: str, chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, sample, page, scripts=False) as shown:
        shown.open(shown.file.as_uri())
        assert shown.value("document.documentElement.className") == ""
        shown.value(OPEN)
        assert shown.value(COLLAPSED) == 0
        assert shown.value("document.querySelectorAll('main [hidden]').length") == 0
        assert shown.value(WIDE) <= 1440


def test_the_table_sorts_by_numbers_and_by_state(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "good", "index.html") as shown:
        shown.start()
        assert shown.value(f"{FIRST}[0].textContent.trim()") == "runs/broken.sqlite"
        shown.click_on("#traces thead th:nth-child(6) button")
        assert shown.value(f"{FIRST}[0].textContent.trim()") == "eval.sqlite"
        shown.click_on("#traces thead th:nth-child(6) button")
        assert shown.value(f"{FIRST}[0].textContent.trim()") == "runs/again.sqlite"
        shown.click_on("#traces thead th:nth-child(7) button")
        assert "25.0%" in shown.value(f"{FIRST}[6].textContent")
        assert shown.console == []


def test_pages_lead_to_each_other_and_to_the_reports(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "good", "index.html") as shown:
        shown.start()
        there = "document.querySelector('#traces tbody a').href"
        assert "runs/over.html" in shown.value("Array.from(document.querySelectorAll('tbody a'), (a) => a.href).join()")
        assert shown.value(there).startswith(tmp_path.as_uri())
        shown.click_on(".masthead a")
        shown.until("location.pathname.endsWith('trend.html') && document.readyState === 'complete'")
        shown.click_on(".masthead a")
        shown.until("location.pathname.endsWith('index.html') && document.readyState === 'complete'")


def test_a_link_to_folded_runs_unfolds_them(chromium: Chromium, tmp_path: Path) -> None:
    fold = "document.querySelector('#t-9 details').open"
    with reader(chromium, tmp_path, "hostile", "trend.html") as shown:
        shown.start()
        assert shown.value(fold) is False
        shown.click_on("a[href='#t-9']")
        shown.until(fold)


def test_hostile_addresses_stay_in_the_folder(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "hostile", "index.html") as shown:
        shown.start()
        hrefs = shown.value("Array.from(document.querySelectorAll('a:not(.skip)'), (each) => each.href)")
        assert len(hrefs) > 20
        assert all(href.startswith(f"{tmp_path.as_uri()}/") for href in hrefs)


def test_paper_holds_all_rows(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "good", "index.html") as shown:
        shown.start()
        shown.media("print")
        rows = (
            "Array.from(document.querySelectorAll('#traces tbody')).map((each) => each.getBoundingClientRect().height)"
        )
        assert len(shown.value(rows)) == 8
        assert min(shown.value(rows)) > 0


@pytest.mark.npm
@pytest.mark.parametrize(("sample", "page"), some([each for each in PAGES if each[0] != "many"], 6))
def test_nothing_serious_in_light_and_dark(sample: str, page: str, chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, sample, page) as shown:
        shown.dark(on=False)
        shown.start()
        shown.value(OPEN)
        shown.value(f"{AXE.read_text(encoding='utf-8')}; 0")
        assert violations(shown, ALL_RULES) == []
        shown.dark(on=True)  # only colours change
        assert violations(shown, COLOURS) == []
