"""The formats of a comparison: the names, suffixes and markers of those of a report."""

from __future__ import annotations

from collections.abc import Callable

from nsysdiag.formats.format import RenderOptions
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show import csv_, html, markdown, text
from nsysdiag.record import to_json


def _json(report: RanksReport, _options: RenderOptions) -> bytes:
    return to_json(report)


RENDERERS: dict[str, Callable[[RanksReport, RenderOptions], bytes]] = {
    "html": html.render,
    "json": _json,
    "md": markdown.render,
    "txt": text.render,
    "csv": csv_.render,
}
