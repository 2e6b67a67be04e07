"""What lost time costs: sentences for the terminal, a table and what its amounts rest on for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.cost.words import BEST, TYPICAL, cost_lines, cost_rows, price_sentences, run_title
from nsysdiag.document.blocks import TERMINAL, TICKET, Cell, Column, Lines, Section, Table
from nsysdiag.document.kinds import TEXT, money

if TYPE_CHECKING:
    from nsysdiag.document.context import Context


def section(context: Context) -> Section | None:
    """None where the settings have no price."""
    report = context.report
    rows = cost_rows(report)
    if report.cost is None or not rows:
        return None
    amount = money(report.cost.currency)
    columns = [
        Column("GPU", TEXT),
        Column("Lost to", TEXT, head=True, length=120),
        Column("An hour", amount),
        Column(run_title(report), amount),
        Column("1,000 steps", amount),
    ]
    best = [BEST] if any(row.kind == "best" for row in rows) else []
    cells = [
        [
            Cell(value, strong=row.kind == "sum")
            for value in (row.device, row.what, row.amount.hour, row.amount.run, row.amount.thousand_steps)
        ]
        for row in rows
    ]
    return Section(
        "cost",
        "What it costs",
        [
            Lines(cost_lines(report), TERMINAL),
            Table("What time without compute costs", columns, cells, sortable=False),
            Lines([*price_sentences(report), TYPICAL, *best], TICKET),
        ],
    )
