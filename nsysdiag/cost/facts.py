"""What time on a GPU costs, as plain data: part of a saved report that was given a price.

Amounts are in `currency`, rounded to six decimals, small ones to six digits. All of them take the window for typical:
what it loses in an hour, the whole run loses in each of its hours.
"""

from __future__ import annotations

from typing import Annotated

from nsysdiag.fields import HOURS, Currency, GpuName, HashedId, Money, OwnText
from nsysdiag.record import Record


class Amount(Record, frozen=True):
    """The same share of the time in three measures: per hour, per run, and per thousand steps; the last is None for a
    device without iterations."""

    hour: Money
    run: Money
    thousand_steps: Money | None


class CostSaving(Record, frozen=True):
    """What a fix brings at best: the ceiling of one finding. Savings of several findings overlap."""

    finding: HashedId
    amount: Amount


class Cost(Record, frozen=True):
    """What a device costs and loses. `gpu_hour_cost` is its price per hour; `matched` is the part of its name that the
    price is for, None for the general one. `run_hours` is the length of the run: of the window itself unless
    `run_given`.

    `idle`, `exposed_comm` and `exposed_copy` add up to `lost`. `step` is the price of the window divided by its number
    of iterations, including warm-up and time between them. `best` is for the finding of this device that comes first in
    the report."""

    currency: Currency
    gpu_hour_cost: Money
    matched: GpuName | None
    run_hours: Annotated[float, HOURS]
    run_given: bool
    idle: Amount
    exposed_comm: Amount
    exposed_copy: Amount
    lost: Amount
    step: Money | None
    best: CostSaving | None


class TotalCost(Record, frozen=True):
    """The devices that have a price, together: `gpu_hour_cost` is that of all in one hour. Steps are those of each
    device, so a thousand of them cost what they cost on all; None unless each has some."""

    currency: Currency
    devices: list[OwnText]
    gpu_hour_cost: Money
    run_given: bool
    idle: Amount
    exposed_comm: Amount
    exposed_copy: Amount
    lost: Amount
