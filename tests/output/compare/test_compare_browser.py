"""The page of a comparison in a real browser: no complaint, complete without scripts, fit for every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.comparison.show.registry import RENDERERS
from nsysdiag.formats import RenderOptions
from tests.conftest import AXE
from tests.levels import some
from tests.output.browser import Chromium
from tests.output.compare_samples import COMPARISONS
from tests.output.reader import Reader
from tests.output.test_axe import ALL_RULES, COLOURS, violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDE = "document.documentElement.scrollWidth"
OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
COLLAPSED = """
Array.from(document.querySelectorAll('section, table, svg.stack, .waterfall rect, .still-lane path'))
  .filter((each) => !each.closest('details:not([open])') && each.getBoundingClientRect().height === 0).length
"""


def reader(chromium: Chromium, folder: Path, sample: str, *, width: int = 1440, scripts: bool = True) -> Reader:
    made = Reader(chromium, width=width, scripts=scripts)
    made.file = folder / "page.html"
    made.file.write_bytes(RENDERERS["html"](COMPARISONS[sample](), RenderOptions()))
    return made


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("sample", COMPARISONS)
def test_nothing_complains_and_nothing_is_wider_than_the_window(
    sample: str, chromium: Chromium, tmp_path: Path
) -> None:
    with reader(chromium, tmp_path, sample) as page:
        page.start()
        page.value(OPEN)
        assert page.value(WIDE) <= 1440
        page.size(800, 1000)
        assert page.value(WIDE) <= 800
        assert page.console == []
        assert page.requests == [page.file.as_uri()]


def test_a_table_can_be_sorted_by_its_change(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "one") as page:
        page.start()
        page.click_on("#changes table thead th:nth-child(4) button")
        first = "document.querySelector('#changes table tbody th').textContent.trim()"
        assert page.value(first) == "Compute"
        page.click_on("#changes table thead th:nth-child(4) button")
        assert page.value(first) == "Idle"
        assert page.console == []


def test_all_of_it_is_there_without_scripts(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "one", scripts=False) as page:
        page.open(page.file.as_uri())
        assert page.value("document.documentElement.className") == ""
        assert page.value(COLLAPSED) == 0
        assert page.value("document.querySelectorAll('#waterfall tbody tr').length") == 6
        assert page.value("document.querySelectorAll('#timelines .still-lane path').length") == 6
        assert page.value("Array.from(document.querySelectorAll('main [hidden]:not(.steps *)')).length") == 0


def test_both_timelines_have_one_scale(chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, "one") as page:
        page.start()
        widths = "Array.from(document.querySelectorAll('#timelines .still-device'), (each) => "
        widths += "each.querySelector('svg').getBoundingClientRect().width)"
        before, after = page.value(widths)
        assert after / before == pytest.approx(0.8, abs=0.002)


@pytest.mark.sampled(normal=2)
@pytest.mark.npm
@pytest.mark.parametrize("sample", some(list(COMPARISONS), 3))
def test_nothing_serious_in_light_and_dark(sample: str, chromium: Chromium, tmp_path: Path) -> None:
    with reader(chromium, tmp_path, sample) as page:
        page.dark(on=False)
        page.start()
        page.value(OPEN)
        page.value(f"{AXE.read_text(encoding='utf-8')}; 0")
        assert violations(page, ALL_RULES) == []
        page.dark(on=True)  # only colours change
        assert violations(page, COLOURS) == []
