"""How a report is held to an expert's reading of the same trace: pure functions that say where the two differ."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nsysdiag.replay.work import LEAST_ERROR
from tests.diagnosis.report_json import (
    PARTS,
    Json,
    devices_of,
    diagnosis_of,
    judged_phases,
    phases_of,
    saved_share,
    sentences,
    shares_of,
)

FIRST_CALL_NS = 25_000_000
"""Calls that only ask for a version or a property come a little before those that start anything."""
OF_WINDOW = 0.02
"""How far from the expert's the ends of the judged range may lie: a step, or this share of the GPU window."""


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that findings of a bottleneck may promise, those whose title has `title` in it."""

    bottleneck: str
    share: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """How many repeats the judged phase has, and how long they are."""

    least: int
    most: int
    shortest_ms: float
    longest_ms: float


@dataclass(frozen=True, slots=True)
class Reading:
    """An expert's reading. `bottlenecks`, `bases` and `seconds` hold the alternates that the expert accepts, None of
    `seconds` where none is. `judged` is the range in ns, None where the whole is judged. `shares` are compute, exposed
    communication, exposed copies and idle of the judged phase in per cent, by device number. `headline` and `named` are
    patterns that the headline, or anything in diagnosis and findings, must match; what `never` matches is not said
    anywhere. `caps` are for predictions, `tops` for the high ends of savings. `first_call_ns` is when the account of a
    cold start begins. `lead` is the bottleneck's share in per cent, `points` how many points shares may differ by."""

    trace: str
    bottlenecks: tuple[str, ...]
    bases: tuple[str, ...]
    shares: dict[int, tuple[float, float, float, float]]
    judged: tuple[int, int] | None = None
    step_ms: float = 0
    points: float = 1
    lead: tuple[float, float] | None = None
    seconds: tuple[str | None, ...] = (None,)
    steps: Steps | None = None
    headline: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    first_call_ns: int | None = None
    caps: tuple[Cap, ...] = ()
    tops: tuple[Cap, ...] = ()
    frameworks: tuple[str, ...] = ()
    no_frameworks: tuple[str, ...] = ()


Check = Callable[[Reading, Json, str], Iterator[str]]


def bottleneck(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The bottleneck is one that the expert accepts, with about the share that the expert has."""
    found = diagnosis_of(report)
    if found["bottleneck"] not in reading.bottlenecks:
        yield f"{found['bottleneck']} instead of {reading.bottlenecks}: {found['headline']}"
    elif reading.lead and not reading.lead[0] <= 100 * found["share"] <= reading.lead[1]:
        yield f"{found['bottleneck']} {100 * found['share']:.1f}%, not {reading.lead}%"


def basis(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The judgement rests on what the expert judged."""
    if (found := diagnosis_of(report)["basis"]) not in reading.bases:
        yield f"basis {found} instead of {reading.bases}"


def second(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The second bottleneck is one that the expert accepts."""
    found = diagnosis_of(report)["second"]
    if (found and found["bottleneck"]) not in reading.seconds:
        yield f"second is {found}, not {reading.seconds}"


def judged_range(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The judged phase begins and ends within a step, or 2% of the GPU window, of the expert's."""
    if reading.judged is None:
        return
    phases = judged_phases(report)
    windows = [device["window"] for device in report["devices"]]
    window = max(each["end_ns"] for each in windows) - min(each["start_ns"] for each in windows)
    tolerated = max(reading.step_ms * 1e6, OF_WINDOW * window)
    found = phases[0]["start_ns"], phases[-1]["end_ns"]
    for end, expected in zip(found, reading.judged, strict=True):
        if abs(end - expected) > tolerated:
            yield f"{end / 1e9:.4f} s instead of {expected / 1e9:.4f} s"


def cold_start(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The account of a cold start begins with the program's first CUDA call, long before the first operation."""
    if reading.first_call_ns is None:
        return
    outside = {key: device["total"]["outside_ns"] for key, device in devices_of(phases_of(report)).items()}
    for device in report["devices"]:
        begins = device["window"]["start_ns"] - outside[device["key"]]
        if abs(begins - reading.first_call_ns) > FIRST_CALL_NS:
            yield f"the account begins at {begins / 1e9:.4f} s, the first call at {reading.first_call_ns / 1e9:.4f} s"


def shares(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """Compute, communication, copies and idle of the judged phase are the expert's, to a point."""
    numbers = {device["key"]: device["ids"][0]["device_id"] for device in report["devices"]}
    found = {numbers[key]: shares_of(device) for key, device in devices_of(judged_phases(report)).items()}
    if found.keys() != reading.shares.keys():
        yield f"devices {sorted(found)} instead of {sorted(reading.shares)}"
        return
    for number, expected in reading.shares.items():
        for name, share in zip(PARTS, expected, strict=True):
            if abs(100 * found[number].get(name, 0.0) - share) > reading.points:
                yield f"device {number}: {name} is {100 * found[number].get(name, 0.0):.1f}%, not {share}%"


def steps(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """What repeats in the judged phase is the expert's step; where the expert has none, no phase has steps enough to
    be called a loop."""
    found = [phase["steps"] for phase in judged_phases(report) if phase["steps"]]
    if reading.steps is None:
        return
    for each in found:
        if not reading.steps.least <= each["count"] <= reading.steps.most:
            yield f"{each['count']} steps, not {reading.steps.least} to {reading.steps.most}"
        if not reading.steps.shortest_ms <= each["median_ns"] / 1e6 <= reading.steps.longest_ms:
            yield f"steps of {each['median_ns'] / 1e6:.3f} ms"
    if not found:
        yield "no steps"


def headline(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The headline names what the expert's does."""
    said = diagnosis_of(report)["headline"]
    yield from (f"the headline has no {each!r}: {said}" for each in reading.headline if not _in(each, said))


def names(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The diagnosis, the phases and the findings name what the expert names."""
    places = [report.get(name) for name in ("diagnosis", "phases", "findings", "recapture")]
    told = json.dumps(places, ensure_ascii=False)
    yield from (f"nothing of {each!r}" for each in reading.named if not _in(each, told))


def never(reading: Reading, report: Json, text: str) -> Iterator[str]:
    """Nothing is said, in the JSON's sentences or in the text output, that the expert forbids."""
    for pattern in reading.never:
        found = [line for line in (*sentences(report), *text.splitlines()) if re.search(pattern, line)]
        yield from (f"{pattern!r} in {line.strip()!r}" for line in found)


def caps(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """No finding promises more than the expert's bound, by more than a prediction is sure of."""
    for finding in report["findings"]:
        share = saved_share(finding)
        for cap in reading.caps:
            about = finding["bottleneck"] == cap.bottleneck and _in(cap.title, finding["title"])
            slack = LEAST_ERROR if finding["saves"] and finding["saves"]["method"] == "replay" else 0
            if about and share is not None and share > cap.share + slack:
                yield f"{finding['title']!r} saves {100 * share:.1f}%, {100 * cap.share:.1f}% are possible"


def tops(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """No high end of a saving is above the time that the finding can touch."""
    for finding in report["findings"]:
        saves = finding["saves"]
        for top in reading.tops:
            if saves and finding["bottleneck"] == top.bottleneck and saves["high_ns"] > top.share * saves["of_ns"]:
                yield f"{finding['title']!r} saves up to {saves['high_ns'] / saves['of_ns']:.3f}, over {top.share}"


def frameworks(reading: Reading, report: Json, _: str) -> Iterator[str]:
    """The frameworks that the trace shows are found, and none that it does not."""
    found = set(diagnosis_of(report)["frameworks"])
    if missing := set(reading.frameworks) - found:
        yield f"no {sorted(missing)} in {sorted(found)}"
    if strangers := found & set(reading.no_frameworks):
        yield f"{sorted(strangers)} are not in this trace"


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        bottleneck,
        basis,
        second,
        judged_range,
        cold_start,
        shares,
        steps,
        headline,
        names,
        never,
        caps,
        tops,
        frameworks,
    )
}


def _in(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None
