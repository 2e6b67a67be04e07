"""The formats of a comparison: the names, suffixes and markers of those of a report."""

from __future__ import annotations

from collections.abc import Callable

from nsysdiag.formats.format import RenderOptions
from nsysdiag.ranks.report import RanksReport, ranks_to_json
from nsysdiag.ranks.show import csv_, html, markdown, text


def _json(report: RanksReport, _options: RenderOptions) -> bytes:
    return ranks_to_json(report)


RENDERERS: dict[str, Callable[[RanksReport, RenderOptions], bytes]] = {
    "html": html.render,
    "json": _json,
    "md": markdown.render,
    "txt": text.render,
    "csv": csv_.render,
}
