"""Every page fits a window of 390 px, that of a telephone: it is read downwards alone, and no column is less wide than
its words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze_ranks
from nsysdiag.comparison.show.registry import RENDERERS as COMPARED
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.ranks.show.registry import RENDERERS as RANKS
from nsysdiag.replay.show.blocks import RENDERERS as WHATIF
from tests.levels import some
from tests.output.compare_samples import COMPARISONS
from tests.output.reader import Reader
from tests.output.samples import SAMPLES
from tests.output.whatif_samples import WHATIFS
from tests.ranks.run import one_file

if TYPE_CHECKING:
    import nsysdiag
    from tests.output.browser import Chromium
    from tests.shared import Shared

pytestmark = [pytest.mark.slow, pytest.mark.browser]
MS = 1_000_000
FIXTURES = sorted(path.stem for path in (Path(__file__).parents[1] / "fixtures").glob("*.sqlite.gz"))
WIDE = "document.documentElement.scrollWidth"
OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


def page(name: str, demo: nsysdiag.Report, folder: Path) -> bytes:
    options = RenderOptions()
    match name:
        case "demo":
            return FORMATS["html"].render(demo, options)
        case "ranks":
            trace = one_file([[2 * MS, 2 * MS, 6 * MS]] * 12).write(
                folder / "a_long_name_of_a_trace_of_all_ranks.sqlite"
            )
            return RANKS["html"](analyze_ranks([trace]), options)
        case "mixed" | "hostile_comparison":
            return COMPARED["html"](COMPARISONS[name.removesuffix("_comparison")](), options)
        case "whatif" | "whatif_listing":
            return WHATIF["html"](WHATIFS["listing" if name == "whatif_listing" else "several"](), options)
    return FORMATS["html"].render(SAMPLES[name](), options)


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize(
    "name",
    [
        *("demo", "several_devices", "hostile", "mixed", "hostile_comparison", "ranks"),
        *("whatif", "whatif_listing"),
    ],
)
def test_nothing_is_wider_than_the_window(name: str, demo: nsysdiag.Report, chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium, width=390) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_bytes(page(name, demo, tmp_path))
        reader.start()
        reader.size(390, 844)
        assert reader.value(WIDE) <= 390
        reader.value(OPEN)
        assert reader.value(WIDE) <= 390


BROKEN_WORDS = """
(() => {
  const broken = [];
  const range = document.createRange();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const holder = text.parentElement;
    const unseen = holder.closest("script, style, svg, pre, code, [hidden], .unseen, .section-diagnosis > .heading");
    if (unseen || !holder.checkVisibility()) continue;
    const long = Array.from(text.data.matchAll(/\\S{25,}/g), (each) => [each.index, each.index + each[0].length]);
    for (const word of text.data.matchAll(/[\\p{L}\\p{N}_]+/gu)) {
      if (long.some(([start, end]) => start <= word.index && word.index < end)) continue;
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const lines = new Set(Array.from(range.getClientRects(), (box) => Math.round(box.top)));
      if (lines.size > 1) broken.push(`${word[0]} in ${holder.tagName} of ${holder.closest(".section, body").id}`);
    }
  }
  return broken;
})()
"""
"""Words that go over two lines, as their column is less wide; longer ones may."""


def narrow(reader: Reader, page: bytes, file: Path) -> None:
    """Show a page in a narrow window, with all that is folded open."""
    reader.file = file
    file.write_bytes(page)
    reader.start()
    reader.size(390, 844)
    reader.value(OPEN)


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("name", ["demo", "several_devices", "hostile"])
def test_no_word_is_broken(name: str, demo: nsysdiag.Report, chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium, width=390) as reader:
        narrow(reader, page(name, demo, tmp_path), tmp_path / "page.html")
        assert reader.value(BROKEN_WORDS) == []


@pytest.mark.parametrize("name", some(FIXTURES, 16))
def test_pages_of_all_fixtures_are_readable(name: str, shared: Shared, chromium: Chromium, tmp_path: Path) -> None:
    made = FORMATS["html"].render(shared.report(shared.fixture(name)), RenderOptions())
    with Reader(chromium, width=390) as reader:
        narrow(reader, made, tmp_path / "page.html")
        assert reader.value(WIDE) <= 390
        assert reader.value(BROKEN_WORDS) == []


def test_a_broken_word_is_found(chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium, width=390) as reader:
        page = "<!doctype html><html lang=en><title>x</title><p style='width: 2ch; overflow-wrap: anywhere'>high</p>"
        narrow(reader, page.encode(), tmp_path / "page.html")
        assert reader.value(BROKEN_WORDS) == ["high in P of "]


def test_a_page_that_is_too_wide_is_found(chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium, width=390) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_text("<!doctype html><html lang=en><title>x</title><p style='width: 500px'>x</p>")
        reader.start()
        assert reader.value(WIDE) > 390
