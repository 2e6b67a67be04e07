"""Invariants of predicted savings: nothing saves more than there is of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.diagnosis.invariants.registry import invariant
from tests.diagnosis.report_json import (
    Json,
    devices_of,
    diagnosis_of,
    judged_phases,
    saved_share,
    sentences,
    shares_of,
    working,
)

SLACK = 0.01
"""A step is judged by its median, shares are of the whole phase."""
METHODS = frozenset({"replay", "bound"})
PER = frozenset({"step", "window"})
OVERLAP = re.compile(r"overlap", re.IGNORECASE)
AT_BEST = re.compile(r"at best[^.;]*?([\d,]+(?:\.\d+)?) ?(ns|µs|us|ms|min|s|h)\b")
UNITS = {"ns": 1, "µs": 10**3, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


def _saving(report: Json) -> Iterator[tuple[str, Json]]:
    for finding in report["findings"]:
        if finding["saves"]:
            yield finding["id"], finding["saves"]
    if diagnosis_of(report)["saves"]:
        yield "the diagnosis", diagnosis_of(report)["saves"]


OTHER_LOOP = "another thread has a loop of its own"


@invariant
def savings_have_bounds(report: Json) -> Iterator[str]:
    """0 <= low <= ns <= high, and no more than what it is of."""
    for name, saves in _saving(report):
        if not 0 <= saves["low_ns"] <= saves["ns"] <= saves["high_ns"] or saves["ns"] > saves["of_ns"]:
            yield f"{name}: {saves}"
        if saves["method"] not in METHODS or saves["per"] not in PER:
            yield f"{name}: {saves['method']!r} per {saves['per']!r}"


@invariant
def ceilings_are_at_most_the_savings(report: Json) -> Iterator[str]:
    """`ceiling_ns` is at most the highest saving, times the steps that the judged time holds where it is per step."""
    judged = _judged_ns(report)
    for finding in report["findings"]:
        if saves := finding["saves"]:
            times = judged / saves["of_ns"] if saves["per"] == "step" and saves["of_ns"] else 1
            if finding["ceiling_ns"] > saves["high_ns"] * times * (1 + SLACK):
                yield f"{finding['id']}: the ceiling is {finding['ceiling_ns']}, the highest saving {saves['high_ns']}"


def _judged_ns(report: Json) -> int:
    """The longest judged time of a device."""
    accounts = [device["account"] for device in devices_of(judged_phases(report)).values()]
    return max((sum(account.values()) for account in accounts), default=0)


def _largest(report: Json, finding: Json, *names: str) -> float:
    """The largest share of these parts of the judged time, of the devices of a finding."""
    devices = devices_of(judged_phases(report))
    found = [sum(shares_of(devices[key])[name] for name in names) for key in finding["devices"] if key in devices]
    return max(found, default=0.0)


@invariant
def a_synchronization_saves_idle_time_at_most(report: Json) -> Iterator[str]:
    """Without it the GPU can give back its idle time, copies can run next to kernels, and where there are peers, the
    GPU can give back what they wait for."""
    peers = len(working(devices_of(judged_phases(report)))) > 1
    parts = ("idle_ns", "exposed_copy_ns", *(["exposed_comm_ns"] if peers else []))
    for finding in report["findings"]:
        share = saved_share(finding)
        if share is None or finding["bottleneck"] != "sync":
            continue
        most = _of_whole_steps(report, _largest(report, finding, *parts))
        if share > most + SLACK:
            yield f"{finding['id']} saves {share:.3f}, idle time and exposed copies are {most:.3f}"


@invariant
def overlapping_saves_the_smaller_side_at_most(report: Json) -> Iterator[str]:
    """Copies can hide behind kernels, or behind the host's work, no longer than those last."""
    for finding in report["findings"]:
        share = saved_share(finding)
        if share is None or finding["bottleneck"] != "copies" or not OVERLAP.search(finding["title"]):
            continue
        sides = [_largest(report, finding, name) for name in ("compute_ns", "idle_ns")]
        most = min(_largest(report, finding, "exposed_copy_ns"), max(sides))
        if share > most + SLACK:
            yield f"{finding['id']} saves {share:.3f} by overlap, {most:.3f} can overlap"


@invariant
def at_best_is_within_the_judged_time(report: Json) -> Iterator[str]:
    """No sentence promises more time than was judged."""
    judged = _judged_ns(report)
    for text in sentences(report):
        for number, unit in AT_BEST.findall(text):
            if float(number.replace(",", "")) * UNITS[unit] > judged * (1 + SLACK):
                yield f"more than the judged time: {text!r}"


@invariant
def no_finding_saves_more_than_its_phase_has(report: Json) -> Iterator[str]:
    """The saving of all steps, or of the window, is within the judged time; and what findings on the time since the
    first work of the GPUs save of a window is within that."""
    judged, steps = _judged_ns(report), [phase["steps"]["count"] for phase in judged_phases(report) if phase["steps"]]
    working_ns = max((device["window_ns"] for device in report["devices"]), default=0)
    for name, saves in _saving(report):
        times = max(steps, default=1) if saves["per"] == "step" else 1
        if saves["ns"] * times > judged * (1 + SLACK):
            yield f"{name} saves {saves['ns']} in each of {times}, judged are {judged}"
    for finding in report["findings"]:
        saves = finding["saves"]
        late = saves and saves["per"] == "window" and finding["cause"] != "before_work"
        if late and saves["ns"] > working_ns + SLACK * saves["of_ns"]:
            yield f"{finding['id']} saves {saves['ns']}, the GPUs have work for {working_ns}"


VISIBLE = 0.003
"""A difference of shares beyond rounding."""
OTHER_WORK = frozenset({"late_rank", "slow_iterations", "empty_iterations"})
"""Causes whose fix may change what each GPU computes."""


@invariant
def a_saving_above_the_share_is_explained(report: Json) -> Iterator[str]:
    """A finding that saves more than the share it takes says why."""
    for finding in report["findings"]:
        saved = saved_share(finding)
        if saved is not None and saved > finding.get("share", saved) + VISIBLE and not finding["note"]:
            yield f"{finding['id']} takes {finding['share']:.4f} and saves {saved:.4f}"


@invariant
def no_saving_shortens_the_kernels(report: Json) -> Iterator[str]:
    """A fix of anything but kernels leaves the job as long as the GPU that computes most does compute. Not where
    another thread has a loop of its own: the kernels of the step are not known."""
    devices = working(devices_of(judged_phases(report)))
    other_loop = any(OTHER_LOOP in finding.get("note", "") for finding in report["findings"])
    if not devices or not all(sum(each["account"].values()) for each in devices.values()):
        return
    kernels = max(_compute(each) / sum(each["account"].values()) for each in devices.values())
    for finding in report["findings"]:
        saved = saved_share(finding)
        if saved is None or finding["bottleneck"] in ("kernels", "parallelism") or finding["cause"] in OTHER_WORK:
            continue
        if other_loop and finding["saves"].get("cannot_tell"):
            continue
        if saved > _of_whole_steps(report, 1 - kernels) + VISIBLE:
            yield f"{finding['id']} saves {saved:.3f}, kernels take {kernels:.3f}"


def _of_whole_steps(report: Json, idle: float) -> float:
    """A share that is no work, as one of whole steps: the idle time of the last step may be missing."""
    counts = [phase["steps"]["count"] for phase in judged_phases(report) if phase["steps"]]
    return 1 - (1 - idle) / (1 + idle / max(min(counts), 1)) if counts else idle


def _compute(device: Json) -> int:
    """What kernels take; paging inside them is no part of it, and what others are waited for none either."""
    kernels: int = sum(device["account"][name] for name in ("kernels", "parallelism"))
    return min(device["total"]["compute_ns"], kernels)
