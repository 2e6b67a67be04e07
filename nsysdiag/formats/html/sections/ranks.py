"""The devices of one trace compared: how even their work is, who is late to collectives, and why."""

from __future__ import annotations

from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, report_section
from nsysdiag.ranks.show.view import ranks_view
from nsysdiag.ranks.show.words import DEVICES_TITLE


def view(context: Context) -> View | None:
    """Left out where there is one device, or nothing that devices have in common."""
    return None if context.report.ranks is None else ranks_view(context.report.ranks, context.causes)


section = report_section("ranks", DEVICES_TITLE, view)
