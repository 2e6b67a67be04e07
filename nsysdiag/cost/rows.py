"""The table of costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.cost.facts import Amount, Cost
from nsysdiag.document.columns import columns, of_devices

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


class _Part(NamedTuple):
    """A part of what a device with a price loses; `finding` is the one whose fix saves it, of `best` alone."""

    what: str
    finding: str | None
    cost: Cost
    amount: Amount


def _parts(device: DeviceReport) -> Iterator[_Part]:
    """The parts, their sum, and what a fix saves at best."""
    cost = device.cost
    if cost is None:
        return
    yield _Part("idle", None, cost, cost.idle)
    yield _Part("exposed_comm", None, cost, cost.exposed_comm)
    yield _Part("exposed_copy", None, cost, cost.exposed_copy)
    yield _Part("lost", None, cost, cost.lost)
    if cost.best:
        yield _Part("best", cost.best.finding, cost, cost.best.amount)


_COLUMNS = """
    what finding currency=cost.currency gpu_hour_cost=cost.gpu_hour_cost run_hours=cost.run_hours step=cost.step
    hour=amount.hour run=amount.run thousand_steps=amount.thousand_steps
"""
TABLES = (of_devices("cost", columns(_Part, _COLUMNS), _parts),)
