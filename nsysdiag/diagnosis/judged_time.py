"""How much of the judged time a finding may save, and why that differs from its share of the time."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.diagnosis.facts import COUNTED_BEFORE, KERNELS
from nsysdiag.diagnosis.focus import window_ns
from nsysdiag.findings.rules import (
    EMPTY_ITERATIONS,
    EXPOSED_COMM,
    EXPOSED_COPY,
    EXPOSED_MPI,
    LATE_RANK,
    SLOW_ITERATIONS,
)
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.report import Finding
from nsysdiag.units import format_share

OTHER_WORK = (LATE_RANK.id, SLOW_ITERATIONS.id, EMPTY_ITERATIONS.id)
"""Causes whose repair may change how much each GPU computes."""
HIDDEN = (EXPOSED_COPY.id, EXPOSED_COMM.id, EXPOSED_MPI.id)
"""Causes whose repair is to run kernels at the same time."""
ABOUT = 0.01
"""Shares closer than that are the same here: a prediction is not exact."""
EXPLAINED = 0.0025
"""A difference of shares that a reader sees."""
MORE_BY_REPLAY = "what waits for it gets shorter, too"


class Judged(Struct, frozen=True):
    """The judged time of one device: `window_ns` of its window, `account_ns` in its account, which may begin before
    that, `compute_ns` of it in its kernels."""

    window_ns: int
    account_ns: int
    compute_ns: int = 0

    @classmethod
    def of(cls, device: PhaseDevice) -> Judged:
        """That of what a device did; paging inside kernels is no compute."""
        compute = min(device.compute_ns, sum(device.account.get(name, 0) for name in KERNELS))
        return cls(window_ns(device), sum(device.account.values()), compute)


class Bound(Struct, frozen=True):
    """The largest share of the judged time that can be saved: what the device that computes most, `busiest`, does not
    compute. None where there is no such bound."""

    share: float = 1.0
    busiest: str | None = None


def bound_of(finding: Finding, judged: dict[str, Judged]) -> Bound:
    """The job is no shorter than the kernels of any one of its GPUs, unless a repair changes these."""
    if finding.bottleneck in KERNELS or finding.cause in OTHER_WORK:
        return Bound()
    compute = {key: each.compute_ns / each.account_ns for key, each in judged.items() if each.account_ns}
    busiest = max(sorted(compute), key=lambda key: compute[key])
    return Bound(1 - compute[busiest], busiest)


def note_of(finding: Finding, own: float, share: float, saved: float, bound: Bound) -> str:
    """Why the share `saved` differs from the `share` of the job's time that a finding takes: `finding` is that of the
    device that saves most, and takes the share `own` of its time. Empty where both are about the same, or nothing is
    saved."""
    parts = []
    if saved - share > EXPLAINED and saved - own > EXPLAINED / 2:
        parts.append(f"saving includes {format_share(saved - own, 1)} counted {_elsewhere(finding)}")
    if saved - share > EXPLAINED and own - share > EXPLAINED / 2:
        parts.append(f"saving of {typed.rank(finding.device)}, share of all GPUs")
    if saved and own - saved > EXPLAINED and bound.busiest and saved > bound.share - EXPLAINED:
        parts.append(f"{typed.rank(bound.busiest)} computes for {format_share(1 - bound.share, 1)} of the time anyway")
    return "; ".join(parts)


def replayed_note(finding: Finding, saved: float) -> str:
    """Why a finding saves the share `saved` by replay, if that is more than its own: time counts to waits before it, or
    others wait for it."""
    if saved - finding.share <= EXPLAINED:
        return ""
    counted = 0.0 if finding.cause == LATE_RANK.id else min(saved, finding.lost_share) - finding.share
    if counted <= EXPLAINED:
        return MORE_BY_REPLAY
    also = f"; {MORE_BY_REPLAY}" if saved - finding.lost_share > EXPLAINED else ""
    return f"saving includes {format_share(counted, 1)} counted {COUNTED_BEFORE}{also}"


def limited(finding: Finding, judged: Mapping[str, Judged]) -> Finding:
    """With a note where it saves less than its share because kernels do not take long enough to hide it."""
    if finding.cause not in HIDDEN or finding.saves is None or finding.note:
        return finding
    saved = finding.saves.ns / finding.saves.of_ns
    kernels = [judged[key].compute_ns / judged[key].account_ns for key in finding.devices if key in judged]
    limit = next((share for share in kernels if abs(saved - share) < ABOUT), None)
    if limit is None or finding.share - finding.saves.most <= ABOUT:
        return finding
    return replace(finding, note=f"kernels can hide only {format_share(limit, 1)}")


def _elsewhere(finding: Finding) -> str:
    """To which bottleneck time counts that a repair of a finding saves as well."""
    return "to what made others late" if finding.cause == LATE_RANK.id else COUNTED_BEFORE
