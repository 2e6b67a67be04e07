"""The report as JSON: the saved form, from which every other one can be made."""

from __future__ import annotations

import msgspec

from nsysdiag.formats.format import RenderOptions
from nsysdiag.record import UNREADABLE, to_json
from nsysdiag.report import Report


def render(report: Report, _options: RenderOptions) -> bytes:
    """The report as UTF-8 JSON."""
    return to_json(report)


class _JsonTool(msgspec.Struct):
    name: str


class _JsonMark(msgspec.Struct):
    tool: _JsonTool


def is_ours(data: bytes) -> bool:
    """Does the document name us as its tool?"""
    try:
        return msgspec.json.decode(data, type=_JsonMark).tool.name == "nsysdiag"
    except UNREADABLE:
        return False
