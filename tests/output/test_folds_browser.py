"""Sections of details are folded below one line: what they hold is found from a link, by a search and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import Report
from tests.levels import some
from tests.output.browser import Chromium
from tests.output.reader import Reader
from tests.output.samples import SAMPLES
from tests.shared import Shared

pytestmark = [pytest.mark.slow, pytest.mark.browser]
FOLDED = "Array.from(document.querySelectorAll('details.fold:not([open])'), (each) => each.parentElement.id)"
OPEN = "document.querySelector('#{} > details.fold').open"
HEIGHT = "document.documentElement.scrollHeight"
PLAIN = ["sim_launch_bound", "sim_graph_replay", "sim_gpu_metrics"]
TALL = 6_500
"""The height in pixels of the page of a plain trace: one GPU, one phase."""


def shown(reader: Reader, made: Report, folder: Path) -> None:
    reader.file = folder / "page.html"
    reader.file.write_bytes(FORMATS["html"].render(made, RenderOptions()))


@pytest.fixture(params=[True, False], ids=["scripts", "none"])
def reader(request: pytest.FixtureRequest, chromium: Chromium, tmp_path: Path) -> Iterator[Reader]:
    with Reader(chromium, scripts=request.param) as opened:
        shown(opened, SAMPLES["one_device"](), tmp_path)
        yield opened


def test_details_are_folded_and_what_to_do_is_not(reader: Reader) -> None:
    reader.start(unfold=False)
    folded = reader.value(FOLDED)
    assert {"gaps", "kernels", "launches", "host", "health", "method"} <= set(folded)
    assert not {"diagnosis", "what-if", "findings", "timeline", "overview", "ledger"} & set(folded)


@pytest.mark.thorough
def test_each_line_begins_with_a_number(reader: Reader) -> None:
    reader.start(unfold=False)
    lines = reader.value("Array.from(document.querySelectorAll('.gist'), (each) => each.textContent)")
    assert lines
    assert [line for line in lines if not line[0].isdigit()] == []


def test_a_search_opens_the_section_that_holds_the_text(reader: Reader) -> None:
    """A link to a text finds it as the search of the browser does."""
    reader.open(f"{reader.file.as_uri()}#:~:text=Summed%20over%20streams%2C%20so%20shares%20may%20pass")
    reader.until(OPEN.format("kernels"))
    assert not reader.value(OPEN.format("launches"))


def test_a_link_to_a_section_opens_it(chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium) as reader:
        shown(reader, SAMPLES["one_device"](), tmp_path)
        reader.start("#kernels", unfold=False)
        reader.until(OPEN.format("kernels"))
        assert not reader.value(OPEN.format("launches"))
        reader.click_on(".contents a[href='#launches']")
        reader.until(OPEN.format("launches"))


def test_paper_has_what_is_folded(chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium) as reader:
        shown(reader, SAMPLES["one_device"](), tmp_path)
        reader.start(unfold=False)
        table = "document.querySelector('#kernels table').getBoundingClientRect().height"
        reader.value("window.dispatchEvent(new Event('beforeprint'))")
        reader.media("print")
        assert reader.value(f"{table} > 0 && document.querySelector('#kernels table').checkVisibility()")
        reader.value("window.dispatchEvent(new Event('afterprint'))")
        assert not reader.value(OPEN.format("kernels"))


@pytest.mark.parametrize("name", some(PLAIN, 3))
def test_the_page_of_a_plain_trace_is_short(name: str, shared: Shared, chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium, width=1280) as reader:
        shown(reader, shared.report(shared.fixture(f"{name}.sqlite")), tmp_path)
        reader.start(unfold=False)
        assert reader.value(HEIGHT) < TALL


@pytest.mark.thorough
def test_so_is_that_of_the_demo(demo: nsysdiag.Report, chromium: Chromium, tmp_path: Path) -> None:
    """It has two GPUs."""
    with Reader(chromium, width=1280) as reader:
        shown(reader, demo, tmp_path)
        reader.start(unfold=False)
        assert reader.value(HEIGHT) < 8_000
