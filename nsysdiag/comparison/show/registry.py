"""The formats of a comparison of two sides: the names, suffixes and markers of those of a report."""

from __future__ import annotations

from collections.abc import Callable

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show import markdown, page, text
from nsysdiag.formats.format import RenderOptions
from nsysdiag.record import to_json


def _json(comparison: Comparison, _options: RenderOptions) -> bytes:
    return to_json(comparison)


RENDERERS: dict[str, Callable[[Comparison, RenderOptions], bytes]] = {
    "html": page.render,
    "json": _json,
    "md": markdown.render,
    "txt": text.render,
}
