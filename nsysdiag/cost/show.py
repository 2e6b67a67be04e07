"""What lost time costs: sentences for the terminal, a table and what its amounts rest on for the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from nsysdiag.cost.facts import Amount, Cost, TotalCost
from nsysdiag.document.blocks import TERMINAL, TICKET, Block, Cell, Column, Lines, Section, SectionScope, Table
from nsysdiag.document.columns import TEXT, CellKind, columns, money, of_devices
from nsysdiag.document.names import clip
from nsysdiag.document.view import WORK, Context
from nsysdiag.document.words import counted
from nsysdiag.fields import value_at
from nsysdiag.units import capitalized, format_money, format_share

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report


# The table of costs.


PARTS = {"idle": "Idle", "exposed_comm": WORK["exposed_comm"][1], "exposed_copy": WORK["exposed_copy"][1]}
"""What time without compute is, by its field in a cost."""


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
    yield from (_Part(what, None, cost, getattr(cost, what)) for what in (*PARTS, "lost"))
    if cost.best:
        yield _Part("best", cost.best.finding, cost, cost.best.amount)


_COLUMNS = """
    what finding currency=cost.currency gpu_hour_cost=cost.gpu_hour_cost run_hours=cost.run_hours step=cost.step
    hour=amount.hour run=amount.run thousand_steps=amount.thousand_steps
"""
TABLES = (of_devices("cost", columns(_Part, _COLUMNS), _parts),)


# What lost time costs, in sentences and rows; nothing if no device has a price.

TITLE = 60
DEVICES_IN_FULL = 3
IF_TYPICAL = "if the whole run is like this window"
TYPICAL = f"The amounts hold {IF_TYPICAL}."
BEST = "Savings of several fixes may overlap: do not add them up."


class CostRow(NamedTuple):
    """An amount of one device, or of all of them: `what` it is lost to, or saved by; `kind` is `part`, `sum` or
    `best`."""

    device: str
    what: str
    amount: Amount
    kind: str = "part"


def cost_lines(report: Report) -> list[str]:
    """The summary: what is lost of one device in full; of several together, and in a line of each."""
    priced = [(device.key, device.cost) for device in report.devices if device.cost is not None]
    if report.cost is None or not priced:
        return []
    if len(report.devices) == 1:
        return _device_lines(report, priced[0][1])
    lines = [f"{_all(report.cost)}: {_lost(report.cost)}. {_run(report.cost, _run_hours(report))}."]
    for key, cost in priced:
        best = _best(report, cost)
        lost = f"{_money(cost, cost.lost.hour)} of {_money(cost, cost.gpu_hour_cost)} an hour is lost"
        lines.append(f"{key}: {lost}{f'; {best}' if best else ''}.")
    return lines


def _device_lines(report: Report, cost: Cost) -> list[str]:
    lines = [f"{_lost(cost)}."]
    if cost.step is not None:
        lost = cost.lost.thousand_steps
        of_it = "" if lost is None else f", {_money(cost, lost)} of it lost"
        lines.append(f"1,000 steps cost {_money(cost, 1000 * cost.step)}{of_it}.")
    lines.append(f"{_run(cost, cost.run_hours)}.")
    if best := _best(report, cost):
        lines.append(f"{capitalized(best)}.")
    return lines


def price_sentences(report: Report) -> list[str]:
    """What an hour and a step of each device cost, and which devices have no price; like ones share a sentence."""
    keys: dict[tuple[str, str], list[str]] = {}
    for device in report.devices:
        keys.setdefault(_price(device), []).append(device.key)
    return [f"{before} {', '.join(names)}{after}." for (before, after), names in keys.items()]


def _price(device: DeviceReport) -> tuple[str, str]:
    """What is said of the price before the name of the device, and what after it."""
    cost = device.cost
    if cost is None:
        return "There is no price for", f", {device.name}"
    by = f", the price for “{cost.matched}”" if cost.matched is not None else ""
    step = f"; a step costs {_money(cost, cost.step)}" if cost.step is not None else ""
    return "An hour of", f" costs {_money(cost, cost.gpu_hour_cost)}{by}{step}"


def run_title(report: Report) -> str:
    """What a run is, as the title of a column."""
    if report.cost is not None and report.cost.run_given:
        return f"A run of {_hours(_run_hours(report))}"
    return "This window"


def cost_rows(report: Report) -> list[CostRow]:
    """The amounts of all devices that have a price together, if those are several, then of each; of many devices
    the sums alone."""
    if report.cost is None:
        return []
    several, in_full = len(report.cost.devices) > 1, len(report.cost.devices) <= DEVICES_IN_FULL
    rows = _rows(_all(report.cost), report.cost) if several else []
    for device in report.devices:
        if device.cost is not None:
            rows += [row for row in _rows(device.key, device.cost) if in_full or row.kind == "sum"]
            if device.cost.best is not None:
                what = f"At best saved by fixing “{_title(report, device.cost.best.finding)}”"
                rows.append(CostRow(device.key, what, device.cost.best.amount, "best"))
    return rows


def _rows(device: str, cost: Cost | TotalCost) -> list[CostRow]:
    parts = [CostRow(device, label, getattr(cost, name)) for name, label in PARTS.items()]
    return [*parts, CostRow(device, "Lost together", cost.lost, "sum")]


def _lost(cost: Cost | TotalCost) -> str:
    parts = ", ".join(
        f"{label.lower()} {_money(cost, amount.hour)}"
        for name, label in PARTS.items()
        if (amount := getattr(cost, name)).hour
    )
    share = format_share(cost.lost.hour, cost.gpu_hour_cost)
    of = f"{_money(cost, cost.gpu_hour_cost)} an hour"
    return f"{_money(cost, cost.lost.hour)} of {of} is lost, {share}" + (f": {parts}" if parts else "")


def _run(cost: Cost | TotalCost, hours: float) -> str:
    """The loss of the run if its length is known, and what that rests on."""
    if cost.run_given:
        return f"A run of {_hours(hours)} loses {_money(cost, cost.lost.run)}, {IF_TYPICAL}"
    return f"Each hour loses that much {IF_TYPICAL}"


def _best(report: Report, cost: Cost) -> str:
    if cost.best is None:
        return ""
    amount = cost.best.amount
    saved = [f"{_money(cost, amount.hour)} an hour"]
    saved += [f"{_money(cost, amount.run)} a run"] if cost.run_given else []
    saved += [f"{_money(cost, amount.thousand_steps)} in 1,000 steps"] if amount.thousand_steps is not None else []
    return f"fixing “{_title(report, cost.best.finding)}” saves at best {', '.join(saved)}"


def _title(report: Report, finding: str) -> str:
    return next((clip(each.title, TITLE) for each in report.findings if each.id == finding), finding)


def _all(cost: TotalCost) -> str:
    together = " together" if len(cost.devices) > 1 else ""
    return counted(len(cost.devices), "GPU") + together


def _run_hours(report: Report) -> float:
    return next((device.cost.run_hours for device in report.devices if device.cost is not None), 0.0)


def _hours(hours: float) -> str:
    return f"{hours:,.6g} h" if hours < 100_000 else f"{hours:,.0f} h"


def _money(cost: Cost | TotalCost, amount: float) -> str:
    return format_money(amount, cost.currency)


def section(context: Context) -> Section | None:
    """None if the settings have no price."""
    report = context.report
    rows = cost_rows(report)
    if report.cost is None or not rows:
        return None
    amount = money(report.cost.currency)
    columns = [
        _column("GPU", TEXT, "device"),
        _column("Lost to", TEXT, "what", head=True, length=120),
        _column("An hour", amount, "amount.hour"),
        _column(run_title(report), amount, "amount.run"),
        _column("1,000 steps", amount, "amount.thousand_steps"),
    ]
    best = [BEST] if any(row.kind == "best" for row in rows) else []
    blocks: list[Block] = [
        Lines(cost_lines(report), TERMINAL),
        Table.of("What time without compute costs", columns, rows, sortable=False),
        Lines([*price_sentences(report), TYPICAL, *best], TICKET),
    ]
    scope = SectionScope("run" if report.cost.run_given else "window", TYPICAL)
    return Section("cost", "What it costs", blocks, scope=scope)


def _column(title: str, kind: CellKind, path: str, **more: Any) -> Column:
    """Strong in a row that is a sum."""
    return Column(title, kind, lambda row: Cell(value_at(row, path), strong=row.kind == "sum"), **more)
