"""What lost time costs: the shares of a report's windows at a price. Needs the report alone, so a saved one will do.

```
  window   |==compute==|..idle..|copies|==compute==|..idle..|       idle 20 of 50, copies 6
  an hour of this GPU costs 2.50:                                   idle 2.50 × 20 / 50 = 1.00, copies 0.30
```
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from nsysdiag.config.settings import CostSettings
from nsysdiag.cost.facts import Amount, Cost, CostSaving, TotalCost
from nsysdiag.findings.facts import Finding
from nsysdiag.report import DeviceReport, Report

NS_PER_HOUR = 3_600_000_000_000
DECIMALS = 6
STEPS = 1000


def priced(report: Report, settings: CostSettings) -> Report:
    """The report with the cost of each device that the settings have a price for, and of all of them together. As it
    was if they have none at all."""
    if settings.gpu_hour_cost is None and not settings.gpus:
        return report
    devices = [replace(device, cost=_cost(device, report.findings, settings)) for device in report.devices]
    return replace(report, devices=devices, cost=_total(devices))


def price_of(name: str, settings: CostSettings) -> tuple[float | None, str | None]:
    """The price of an hour of a GPU by its name, and the part of the name that it is for."""
    fitting = [part for part in settings.gpus if part.casefold() in name.casefold()]
    if not fitting:
        return settings.gpu_hour_cost, None
    longest = min(fitting, key=lambda part: (-len(part), part))
    return settings.gpus[longest], longest


def _cost(device: DeviceReport, findings: list[Finding], settings: CostSettings) -> Cost | None:
    price, matched = price_of(device.name, settings)
    whole = device.window_ns
    if price is None or whole <= 0:
        return None
    run_hours = settings.run_hours or whole / NS_PER_HOUR
    count = device.iterations.count if device.iterations is not None else 0
    steps = STEPS * price * whole / NS_PER_HOUR / count if count else None

    def cost(ns: int) -> Amount:
        """What the part `ns` of the window costs."""
        thousand = None if steps is None else _rounded(steps * ns / whole)
        run = _rounded(price * run_hours * ns / whole)
        return Amount(hour=_rounded(price * ns / whole), run=run, thousand_steps=thousand)

    own = [finding for finding in findings if finding.device == device.key and finding.ceiling_ns > 0]
    return Cost(
        currency=settings.currency,
        gpu_hour_cost=price,
        matched=matched,
        run_hours=run_hours,
        run_given=settings.run_hours is not None,
        idle=cost(device.idle_ns),
        exposed_comm=cost(device.exposed_comm_ns),
        exposed_copy=cost(device.exposed_copy_ns),
        lost=cost(device.idle_ns + device.exposed_comm_ns + device.exposed_copy_ns),
        step=None if steps is None else _rounded(steps / STEPS),
        best=CostSaving(finding=own[0].id, amount=cost(own[0].ceiling_ns)) if own else None,
    )


def _total(devices: list[DeviceReport]) -> TotalCost | None:
    costs = {device.key: device.cost for device in devices if device.cost is not None}
    if not costs:
        return None
    each = list(costs.values())
    return TotalCost(
        currency=each[0].currency,
        devices=list(costs),
        gpu_hour_cost=_rounded(sum(cost.gpu_hour_cost for cost in each)),
        run_given=each[0].run_given,
        idle=_sum([cost.idle for cost in each]),
        exposed_comm=_sum([cost.exposed_comm for cost in each]),
        exposed_copy=_sum([cost.exposed_copy for cost in each]),
        lost=_sum([cost.lost for cost in each]),
    )


def _sum(amounts: list[Amount]) -> Amount:
    steps = [amount.thousand_steps for amount in amounts if amount.thousand_steps is not None]
    return Amount(
        hour=_rounded(sum(amount.hour for amount in amounts)),
        run=_rounded(sum(amount.run for amount in amounts)),
        thousand_steps=_rounded(sum(steps)) if len(steps) == len(amounts) else None,
    )


def _rounded(amount: float) -> float:
    """To six decimals; what is less than one to six digits, for a single step costs next to nothing."""
    digits = 0 if amount == 0 else max(0, -math.floor(math.log10(amount)) - 1)
    return round(amount, DECIMALS + digits)
