"""What lost time costs, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.cost.words import BEST, TYPICAL, cost_rows, price_sentences, run_title
from nsysdiag.document.markup import table, text

if TYPE_CHECKING:
    from nsysdiag.cost.words import CostRow
    from nsysdiag.report import Report


def cost_blocks(report: Report) -> list[str]:
    """A heading, a table and what the amounts rest on; nothing where there is no price."""
    rows = cost_rows(report)
    if not rows:
        return []
    header = ["GPU", "Lost to", "An hour", text(run_title(report)), "1,000 steps"]
    sentences = [*price_sentences(report), TYPICAL, *([BEST] if any(row.kind == "best" for row in rows) else [])]
    listed = "\n".join(f"- {text(sentence)}" for sentence in sentences)
    return ["## What it costs", table(header, "llrrr", [_cells(row) for row in rows]), listed]


def _cells(row: CostRow) -> list[str]:
    cells = [text(cell) for cell in (row.device, row.what, row.hour, row.run, row.thousand_steps)]
    return [f"**{cell}**" for cell in cells] if row.kind == "sum" else cells
