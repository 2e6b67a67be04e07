"""The table of costs as rows of plain values: see `nsysdiag.formats.rows` for its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.columns import Rows

if TYPE_CHECKING:
    from nsysdiag.report import Report


def cost_rows(report: Report) -> Rows:
    """A row for each part of what a device with a price loses, one for their sum, one for what a fix saves at best."""
    for device in report.devices:
        cost = device.cost
        if cost is None:
            continue
        amounts = [
            ("idle", None, cost.idle),
            ("exposed_comm", None, cost.exposed_comm),
            ("exposed_copy", None, cost.exposed_copy),
            ("lost", None, cost.lost),
            *([("best", cost.best.finding, cost.best.amount)] if cost.best else []),
        ]
        for what, finding, amount in amounts:
            yield (
                device.key,
                what,
                finding,
                cost.currency,
                cost.gpu_hour_cost,
                cost.run_hours,
                cost.step,
                amount.hour,
                amount.run,
                amount.thousand_steps,
            )
