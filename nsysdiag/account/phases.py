"""What a device did in each phase of the job: its four parts, its ledger and its account."""

from __future__ import annotations

from nsysdiag.account.bottlenecks import Bottlenecks
from nsysdiag.account.outside import Start
from nsysdiag.arrays.groups import summed
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.iterations.report import WORK, idle_parts, work_parts
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.phases.facts import PhaseDevice, Waited
from nsysdiag.phases.phases import JobPhases


def device_phases(
    found: JobPhases,
    key: str,
    slices: Slices,
    split: WindowSplit,
    bottlenecks: Bottlenecks,
    start: Start | None,
    keys: list[str],
) -> list[PhaseDevice]:
    """One record a phase, in their order. The account of a start-up begins with what the program did before the work of
    the device, `start`, where that is given; where that is judged, all of it is charged to the first phase. `keys` are
    those of all devices, by number."""
    before = _before(found, start)
    spans = Intervals.of([(phase.start, phase.end) for phase in found.phases])
    work, idle = work_parts(split, spans), idle_parts(slices, spans)
    accounts = bottlenecks.each_of(spans)
    waited = {(keys[number], name): ns for (number, name), ns in bottlenecks.waited(spans).items()}
    return [
        _of_phase(key, at, spans, work, idle, accounts, waited, before if at == 0 else None) for at in range(len(spans))
    ]


def _before(found: JobPhases, start: Start | None) -> dict[str, int] | None:
    if start is None or found.judges_before:
        return None if start is None else start.account
    first = found.phases[0]
    return start.between(first.start, first.end).account if first.name == "start-up" else None


def _of_phase(
    key: str,
    at: int,
    spans: Intervals,
    work: dict[str, IntArray],
    idle: dict[str, IntArray],
    accounts: dict[str, IntArray],
    waited: dict[tuple[str, str], IntArray],
    before: dict[str, int] | None,
) -> PhaseDevice:
    ledger = {cause: int(ns[at]) for cause, ns in idle.items() if ns[at]}
    parts = {name: int(work[name][at]) for name in WORK}
    inside = sum(parts.values()) + sum(ledger.values())
    account = summed([{name: int(ns[at]) for name, ns in accounts.items() if ns[at]}, before or {}])
    return PhaseDevice(
        key=key,
        compute_ns=parts["compute"],
        exposed_comm_ns=parts["exposed_comm"],
        exposed_copy_ns=parts["exposed_copy"],
        idle_ns=sum(ledger.values()),
        outside_ns=sum(before.values()) if before else int((spans.end - spans.start)[at]) - inside,
        ledger=ledger,
        account=account,
        account_base="start" if before else "window",
        waited=[Waited(other, name, int(ns[at])) for (other, name), ns in waited.items() if ns[at]],
    )
