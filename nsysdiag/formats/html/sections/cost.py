"""What lost time costs, where the settings have a price."""

from __future__ import annotations

from nsysdiag.cost.words import BEST, TYPICAL, cost_rows, price_sentences, run_title
from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, report_section


def view(context: Context) -> View | None:
    """The amounts of each device and of all; left out where there is no price."""
    rows = cost_rows(context.report)
    if not rows:
        return None
    best = [BEST] if any(row.kind == "best" for row in rows) else []
    return {
        "rows": rows,
        "run": run_title(context.report),
        "sentences": [*price_sentences(context.report), TYPICAL, *best],
    }


section = report_section("cost", "What it costs", view)
