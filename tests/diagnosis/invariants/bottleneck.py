"""Invariants of the judgement: it is the account's, and everything that is said of the whole derives from it."""

from __future__ import annotations

from collections.abc import Iterator

from nsysdiag.causes import CAUSES
from tests.diagnosis.invariants.registry import invariant
from tests.diagnosis.report_json import (
    BASES,
    PARTS,
    SECOND,
    Json,
    account_of,
    diagnosis_of,
    judged_phases,
    phases_of,
    ranked,
)

ROUNDING = 1e-3
VERDICTS = {
    "kernels": "gpu-bound",
    "parallelism": "parallelism-bound",
    "communication": "comm-bound",
    "copies": "copy-bound",
    "input": "input-bound",
    "sync": "sync-bound",
    "launch": "launch-bound",
    "unknown": "unresolved",
}
"""The verdict of a bottleneck; those of the other bottlenecks are named after the cause that leads in them."""
OF_A_CAUSE = frozenset({"host", "memory", "startup", "other_process"})
FEWEST_STEPS = 5


def _judged(report: Json) -> list[tuple[str, float]]:
    return ranked(account_of(judged_phases(report)))


@invariant
def the_largest_part_leads(report: Json) -> Iterator[str]:
    """The bottleneck is the largest part of the job's account, and has its share."""
    diagnosis, parts = diagnosis_of(report), _judged(report)
    if not parts:
        if diagnosis["bottleneck"] != "unknown":
            yield f"{diagnosis['bottleneck']} without an account"
        return
    shares = dict(parts)
    share = shares.get(diagnosis["bottleneck"], 0.0)
    if share < parts[0][1]:
        yield f"{diagnosis['bottleneck']} ({share:.3f}) leads, {parts[0][0]} ({parts[0][1]:.3f}) is larger"
    elif abs(diagnosis["share"] - share) > ROUNDING:
        yield f"the share of {diagnosis['bottleneck']} is {share:.4f}, not {diagnosis['share']}"


@invariant
def the_next_part_is_second(report: Json) -> Iterator[str]:
    """The second is the next part, where that is a tenth or more."""
    diagnosis = diagnosis_of(report)
    rest = [(name, share) for name, share in _judged(report) if name != diagnosis["bottleneck"]]
    second = diagnosis["second"]
    if second is None:
        if rest and rest[0][1] >= SECOND + ROUNDING:
            yield f"no second, though {rest[0][0]} has {rest[0][1]:.3f}"
        return
    share = dict(rest).get(second["bottleneck"], 0.0)
    if not rest or share < rest[0][1] or share < SECOND - ROUNDING:
        yield f"second is {second['bottleneck']} ({share:.3f}) of {rest[:2]}"
    elif abs(second["share"] - share) > ROUNDING:
        yield f"the share of {second['bottleneck']} is {share:.4f}, not {second['share']}"


@invariant
def the_unknown_share_is_the_account_s(report: Json) -> Iterator[str]:
    """`unknown_share` is the unknown part of the judged account."""
    parts = _judged(report)
    share = dict(parts).get("unknown", 0.0)
    if parts and abs(diagnosis_of(report)["unknown_share"] - share) > ROUNDING:
        yield f"unknown_share is {diagnosis_of(report)['unknown_share']}, in the account {share:.4f}"


@invariant
def phases_name_their_largest_part(report: Json) -> Iterator[str]:
    """The bottleneck of each phase is the largest part of its account."""
    for number, phase in enumerate(phases_of(report)):
        parts = ranked(account_of([phase]))
        share = dict(parts).get(phase["bottleneck"], 0.0)
        if parts and share < parts[0][1]:
            yield f"phase {number}: {phase['bottleneck']} ({share:.3f}), not {parts[0][0]} ({parts[0][1]:.3f})"
        elif parts and abs(phase["share"] - share) > ROUNDING:
            yield f"phase {number}: the share of {phase['bottleneck']} is {share:.4f}, not {phase['share']}"


@invariant
def the_basis_is_what_the_phases_show(report: Json) -> Iterator[str]:
    """Steady: of a steady phase with steps enough. Phase: said to be too few. None: where no GPU worked."""
    diagnosis = diagnosis_of(report)
    basis = diagnosis["basis"]
    if basis not in BASES:
        yield f"unknown basis {basis!r}"
    worked = any(device[name] for device in report["devices"] for name in PARTS)
    if (basis == "none") == worked:
        yield f"basis {basis!r}, and the GPU's work is {'there' if worked else 'not there'}"
    if basis not in {"steady", "phase"}:
        return
    for phase in judged_phases(report):
        if phase["name"] != "steady":
            yield f"basis {basis!r} of a phase called {phase['name']!r}"
        if basis == "steady" and phase["steps"] and phase["steps"]["count"] < FEWEST_STEPS:
            yield f"steady by {phase['steps']['count']} steps"
    if basis == "phase" and "too few to be steady" not in diagnosis["headline"]:
        yield "a few repeats are judged, and the headline does not call them too few"


@invariant
def a_steady_phase_is_not_denied(report: Json) -> Iterator[str]:
    """No steady state is claimed beside a phase that is called steady."""
    steady = [phase for phase in phases_of(report) if phase["name"] == "steady"]
    if steady and "no steady state" in diagnosis_of(report)["headline"]:
        yield f"{len(steady)} steady phases, and the headline says that there is no steady state"


@invariant
def verdicts_derive_from_the_diagnosis(report: Json) -> Iterator[str]:
    """Each verdict is one that a bottleneck leads to; that of a lone device is the diagnosis's own."""
    for device in report["devices"]:
        verdict = device["verdict"]["id"]
        if verdict != "no-gpu-work" and verdict not in VERDICTS.values() and not _of_a_cause(verdict):
            yield f"{device['key']}: no bottleneck leads to the verdict {verdict!r}"
    bottleneck = diagnosis_of(report)["bottleneck"]
    verdicts = {device["verdict"]["id"] for device in report["devices"]}
    if not any(_agrees(verdict, bottleneck) for verdict in verdicts) and verdicts:
        yield f"no verdict is that of {bottleneck}: {sorted(verdicts)}"


def _of_a_cause(verdict: str) -> bool:
    return verdict == "contended" or (verdict.endswith("-bound") and verdict.removesuffix("-bound") in CAUSES)


def _agrees(verdict: str, bottleneck: str) -> bool:
    if bottleneck in OF_A_CAUSE:
        return _of_a_cause(verdict)
    return verdict == VERDICTS.get(bottleneck) or (bottleneck == "unknown" and verdict == "no-gpu-work")


@invariant
def gpus_are_counted(report: Json) -> Iterator[str]:
    """The GPUs used are among those present, and those that worked are among those used."""
    diagnosis = diagnosis_of(report)
    used, present = diagnosis["gpus_used"], diagnosis["gpus_present"]
    if present is not None and used is not None and used > present:
        yield f"{used} GPUs used of {present}"
    if used is not None and used > len(report["devices"]):
        yield f"{used} GPUs used, {len(report['devices'])} in the report"
