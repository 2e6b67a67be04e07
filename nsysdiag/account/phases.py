"""What a device did in each phase of the job: its four parts, its ledger and its account."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.account.bottlenecks import Bottlenecks
from nsysdiag.account.outside import first_call, outside_account
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.iterations.report import WORK, idle_parts, work_parts
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases

COLD = "cold"


@dataclass(frozen=True, slots=True)
class Outside:
    """The time from the first CUDA call of the launching thread, at `begin`, to the device's first work, at `end`, by
    bottleneck."""

    begin: int
    end: int
    account: dict[str, int]


def outside_of(window: Intervals, layered: LayeredEvidence, lane: IntArray) -> Outside | None:
    """None where nothing ran, or where no CUDA call came before it."""
    if not len(window):
        return None
    end = int(window.start[0])
    found = first_call(layered, lane, end)
    return None if found is None else Outside(found[1], end, outside_account(layered, *found, end))


def device_phases(
    found: JobPhases,
    key: str,
    slices: Slices,
    split: WindowSplit,
    bottlenecks: Bottlenecks,
    outside: Outside | None,
) -> list[PhaseDevice]:
    """One record a phase, in their order. In a cold job the account of the first one begins with the first CUDA
    call."""
    spans = Intervals.of([(phase.start, phase.end) for phase in found.phases])
    work, idle = work_parts(split, spans), idle_parts(slices, spans)
    accounts = bottlenecks.each_of(spans)
    first = outside if found.basis == COLD else None
    return [_of_phase(key, at, spans, work, idle, accounts, first if at == 0 else None) for at in range(len(spans))]


def _of_phase(
    key: str,
    at: int,
    spans: Intervals,
    work: dict[str, IntArray],
    idle: dict[str, IntArray],
    accounts: dict[str, IntArray],
    outside: Outside | None,
) -> PhaseDevice:
    ledger = {cause: int(ns[at]) for cause, ns in idle.items() if ns[at]}
    parts = {name: int(work[name][at]) for name in WORK}
    inside = sum(parts.values()) + sum(ledger.values())
    account = {name: int(ns[at]) for name, ns in accounts.items() if ns[at]}
    before = 0 if outside is None else outside.end - outside.begin
    for name, ns in (outside.account if outside else {}).items():
        account[name] = account.get(name, 0) + ns
    return PhaseDevice(
        key=key,
        compute_ns=parts["compute"],
        exposed_comm_ns=parts["exposed_comm"],
        exposed_copy_ns=parts["exposed_copy"],
        idle_ns=sum(ledger.values()),
        outside_ns=before if outside else int((spans.end - spans.start)[at]) - inside,
        ledger=ledger,
        account=account,
        account_base="start" if outside else "window",
    )
