"""Every page fits a window of 390 px, that of a telephone: it is read downwards alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze_ranks
from nsysdiag.comparison.show.registry import RENDERERS as COMPARED
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.ranks.show.registry import RENDERERS as RANKS
from nsysdiag.replay.show.registry import RENDERERS as WHATIF
from tests.output.compare_samples import COMPARISONS
from tests.output.reader import Reader
from tests.output.samples import SAMPLES
from tests.output.whatif_samples import WHATIFS
from tests.ranks.run import one_file

if TYPE_CHECKING:
    from pathlib import Path

    import nsysdiag
    from tests.output.devtools import Chromium

pytestmark = [pytest.mark.slow, pytest.mark.browser]
MS = 1_000_000
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


def test_a_page_that_is_too_wide_is_found(chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium, width=390) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_text("<!doctype html><html lang=en><title>x</title><p style='width: 500px'>x</p>")
        reader.start()
        assert reader.value(WIDE) > 390
