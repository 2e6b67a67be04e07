"""What lost time costs, where the settings have a price."""

from __future__ import annotations

from nsysdiag.cost.words import BEST, TYPICAL, cost_rows, price_sentences, run_title
from nsysdiag.formats.html.sections.section import Page, ReportSection, View


def view(page: Page) -> View | None:
    """The amounts of each device and of all; left out where there is no price."""
    rows = cost_rows(page.report)
    if not rows:
        return None
    best = [BEST] if any(row.kind == "best" for row in rows) else []
    return {
        "rows": rows,
        "run": run_title(page.report),
        "sentences": [*price_sentences(page.report), TYPICAL, *best],
    }


SECTION = ReportSection("cost", "What it costs", view)
