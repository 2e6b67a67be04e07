"""Gaps that are the same place in the program, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.code import call_site_label, host_code_label
from nsysdiag.document.context import Context
from nsysdiag.document.figures import safe_color
from nsysdiag.document.view import by_total
from nsysdiag.document.words import path_label, signatures_sentence
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.formats.html.timeline.data import gap_key
from nsysdiag.gap_groups.show import groups

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport

MAX_ROWS = 50


def view(context: Context, device: DeviceReport) -> View:
    """The signatures with the most time."""
    rows = by_total(device.signatures)[: context.rows(MAX_ROWS)]
    drawn = [
        (row, context.causes.title(row.cause), safe_color(context.causes[row.cause].color), path_label(row.nvtx))
        for row in rows
    ]
    code = {row.id: (call_site_label(row.call_site), host_code_label(row.host_code)) for row in rows}
    return {
        "rows": drawn,
        "all": len(device.signatures),
        "code": code if any(map(any, code.values())) else {},
        "iterates": any(row.per_iteration_ns for row in rows),
        "sentence": signatures_sentence(device),
        "links": {row.id: gap_key(context.report, device.key, row.representative_start_ns) for row in rows},
    }


section = device_section("signatures", "Recurring gaps", lambda device: device.signatures, view, groups)
