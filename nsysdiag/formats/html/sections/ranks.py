"""The devices of one trace beside each other: how even their work is, who is late to collectives, and why."""

from __future__ import annotations

from nsysdiag.formats.html.sections.section import Page, ReportSection, View
from nsysdiag.ranks.show.view import ranks_view
from nsysdiag.ranks.show.words import DEVICES_TITLE


def view(page: Page) -> View | None:
    """Left out where there is one device, or nothing that devices have in common."""
    return None if page.report.ranks is None else ranks_view(page.report.ranks, page.causes)


SECTION = ReportSection("ranks", DEVICES_TITLE, view)
