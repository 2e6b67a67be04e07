"""Invariants of the list of findings: the job's, a dozen at most, by what they save."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from nsysdiag.account.bottlenecks import WAITING_FOR_A_SYNC
from nsysdiag.diagnosis.one_problem import ABOUT, BEFORE_EACH
from tests.diagnosis.invariants.registry import invariant
from tests.diagnosis.report_json import (
    BOTTLENECKS,
    Json,
    account_of,
    diagnosis_of,
    judged_phases,
    saved_share,
)

MOST = 12
SEVERITIES = (("high", 0.2), ("medium", 0.05), ("low", 0.01), ("info", 0.0))
ROUNDING = 1e-3


@invariant
def at_most_a_dozen(report: Json) -> Iterator[str]:
    """A dozen findings of the job, not of each device."""
    if len(report["findings"]) > MOST:
        yield f"{len(report['findings'])} findings"


@invariant
def each_finding_is_one(report: Json) -> Iterator[str]:
    """The same finding of several devices is one finding with the devices named."""
    ids = Counter(finding["id"] for finding in report["findings"])
    yield from (f"{count} findings with the id {name}" for name, count in ids.items() if count > 1)
    said = Counter((finding["cause"], finding["title"], tuple(finding["nvtx"])) for finding in report["findings"])
    yield from (f"{count} times {title!r}" for (_, title, _), count in said.items() if count > 1)


@invariant
def findings_are_of_the_job(report: Json) -> Iterator[str]:
    """Findings name devices and bottlenecks that there are; `device` is one of `devices`."""
    keys = {device["key"] for device in report["devices"]}
    for finding in report["findings"]:
        if not finding["devices"] or not set(finding["devices"]) <= keys:
            yield f"{finding['id']}: devices {finding['devices']}"
        elif finding["device"] not in finding["devices"]:
            yield f"{finding['id']}: {finding['device']} is none of its devices"
        if finding["bottleneck"] not in BOTTLENECKS:
            yield f"{finding['id']}: {finding['bottleneck']!r} is no bottleneck"


@invariant
def the_diagnosis_names_findings(report: Json) -> Iterator[str]:
    """`diagnosis.findings` are ids of findings, in their order."""
    order = {finding["id"]: at for at, finding in enumerate(report["findings"])}
    named = diagnosis_of(report)["findings"]
    if missing := [name for name in named if name not in order]:
        yield f"no findings: {missing}"
    elif [order[name] for name in named] != sorted({order[name] for name in named}):
        yield "the findings of the diagnosis are in another order"


def weighed_share(finding: Json) -> float | None:
    """What it saves; where the trace cannot tell half of that, or what it saves at least."""
    share, saves = saved_share(finding), finding["saves"]
    if share is None or not saves.get("cannot_tell"):
        return share
    return float(max(saves["ns"] / 2, saves["low_ns"]) / max(saves["of_ns"], 1))


def _place(finding: Json) -> tuple[float, float] | None:
    """Between which shares a finding is ordered: what it saves, of an unknown one its share of the time if that is
    more."""
    place, own = _by_saving(finding), float(finding.get("share", finding["lost_share"]))
    if finding["bottleneck"] != "unknown" or (place is not None and finding["cause"] == "slow_iterations"):
        return place
    return (own, own) if place is None else (max(place[0], own), max(place[1], own))


def _by_saving(finding: Json) -> tuple[float, float] | None:
    """Between which shares a finding is ordered by what it saves, None if it saves nothing known. An upper bound
    stands behind a prediction of about its size, and so may what a thread did behind a wait. What slow iterations take
    counts half, and so does a bound on what comes before each operation. That a GPU is late stands before the wait by
    which it is."""
    share, saves = weighed_share(finding), finding["saves"]
    if share is None:
        return None
    if finding["cause"] == "slow_iterations":
        return share / 2, share / 2
    if saves.get("cannot_tell"):
        return share, share
    if finding["cause"] == "late_rank" and saves["method"] == "replay":
        return share + ABOUT, share + ABOUT
    if finding["cause"] in BEFORE_EACH and saves["method"] != "replay":
        return share / 2, share / 2
    behind = finding["bottleneck"] in WAITING_FOR_A_SYNC and finding["lost_share"] > finding.get("share", 0.0)
    least = max(share - ABOUT, 0.0)
    return (least, least) if saves["method"] != "replay" else (least if behind else share, share)


@invariant
def findings_are_ordered(report: Json) -> Iterator[str]:
    """By the share that they save, unknown ones by their share of the time; then those that save nothing known. A
    prediction stands before an upper bound of about its size."""
    places = [(finding["id"], _place(finding)) for finding in report["findings"]]
    placed = [(name, place) for name, place in places if place is not None]
    for (name, (_, most)), (after, (least, _)) in pairwise(placed):
        if least > most + ROUNDING:
            yield f"{after} ({least:.3f}) stands behind {name} ({most:.3f})"
    rest = [finding for finding, (_, place) in zip(report["findings"], places, strict=True) if place is None]
    for one, after in pairwise([finding for finding in rest if finding["lost_share"]]):  # kernels lose no idle time
        if after["lost_share"] > one["lost_share"] + ROUNDING:
            yield f"{after['id']} ({after['lost_share']:.3f} of the time) stands behind {one['id']}"
    with_savings = [at for at, finding in enumerate(report["findings"]) if saved_share(finding) is not None]
    without = [at for at, (_, place) in enumerate(places) if place is None]
    if with_savings and without and min(without) < max(with_savings):
        yield "a finding without savings stands before one with them"


@invariant
def severity_is_by_what_is_saved(report: Json) -> Iterator[str]:
    """20, 5 and 1% of the judged time; what is unknown is `info`."""
    for finding in report["findings"]:
        share = weighed_share(finding)
        if finding["bottleneck"] == "unknown":
            expected = {"info"}
        elif share is None:
            expected = {name for name, _ in SEVERITIES}
        else:
            expected = {_severity(share - ROUNDING), _severity(share + ROUNDING)}
        if finding["severity"] not in expected:
            yield f"{finding['id']} is {finding['severity']}, saving {share}"


def _severity(share: float) -> str:
    return next((name for name, least in SEVERITIES if share >= least), "info")


@invariant
def nothing_minor_stands_above_what_is_high(report: Json) -> Iterator[str]:
    """No finding of severity `info`, unknown ones apart, stands above one of severity `high`: neither among those that
    save something, nor among the others behind them."""
    known = [finding for finding in report["findings"] if finding["bottleneck"] != "unknown"]
    for saving in (True, False):
        severities = [each["severity"] for each in known if (saved_share(each) is not None) == saving]
        if "info" in severities and "high" in severities[severities.index("info") :]:
            yield f"severities in the order {severities}"


POINTING = frozenset({"slow_iterations", "empty_iterations", "unfused", "single_precision"})
"""They point at time that other findings account for."""


@invariant
def findings_take_no_more_than_their_bottleneck(report: Json) -> Iterator[str]:
    """Together the findings of a bottleneck take at most its part of the judged time. Kernels are one bottleneck, on a
    full and on a mostly empty GPU."""
    account = account_of(judged_phases(report))
    account["kernels"] += account.pop("parallelism", 0)
    total = sum(account.values())
    taken: Counter[str] = Counter()
    for finding in report["findings"]:
        if finding["cause"] not in POINTING:
            taken[finding["bottleneck"].replace("parallelism", "kernels")] += finding.get("share", 0.0)
    for name, share in taken.items() if total else ():
        if share > account.get(name, 0) / total + 2 * ROUNDING:
            yield f"findings of {name} take {share:.3f} of the time, {name} itself {account.get(name, 0) / total:.3f}"


@invariant
def a_part_says_of_what_and_promises_nothing(report: Json) -> Iterator[str]:
    """A finding that is a part of another one has no saving of its own; the other has one, and is no part itself."""
    findings = {finding["id"]: finding for finding in report["findings"]}
    for finding in findings.values():
        if not (of := finding.get("part_of")):
            continue
        whole = findings.get(of)
        if whole is None or whole.get("part_of") or not whole["saves"]:
            yield f"{finding['id']} is a part of {of}"
        if finding["saves"] or not finding["note"].startswith("part of: "):
            yield f"{finding['id']} saves {finding['saves']}: {finding['note']!r}"
