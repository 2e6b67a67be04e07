"""Findings on the start of a program: the time before the first work of a device."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.account.outside import COMPILING, MPI_INIT, Start
from nsysdiag.arrays.groups import longest
from nsysdiag.arrays.intervals import (
    BoolArray,
    IntArray,
    Intervals,
    common_ns,
    contains,
    coverage,
    intersect,
    subtract,
    union,
)
from nsysdiag.bottlenecks import BOTTLENECKS, promised
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.host import OS_CALLS, HostActivity
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import NamedRows
from nsysdiag.events.samples import SAMPLES, SampleRows
from nsysdiag.fields import Sentence
from nsysdiag.findings.evidence_rows import RUNTIME
from nsysdiag.findings.facts import EvidenceRow, Finding
from nsysdiag.findings.phase_work import JudgedTime
from nsysdiag.findings.rules import BEFORE_WORK, severity
from nsysdiag.stacks.samples import sampled_code
from nsysdiag.typed import joined, say
from nsysdiag.units import NOTABLE, format_count, format_ns

# The rows of the trace behind what a program did before the first work of a device.


def start_rows(start: Start, spans: Intervals, most: int) -> list[EvidenceRow]:
    """The calls with most of the time `spans`; for host code the first CPU sample of the periods without a call
    that have most samples. `most` of them, each with its part of that time; samples stand for no more than they can.

    ```
    thread    [cudaMalloc [ioctl] ]   . samples . . .  [read      ]
    rows      RUNTIME                 COMPOSITE_EVENTS  OSRT_API
    ```
    """
    host, left = start.host, spans
    api = host.api.take(host.api.outermost)
    found = _calls(host, api, left, RUNTIME, most)
    left = subtract(left, union(api.spans))
    found += _calls(host, host.os_calls, left, OS_CALLS, most)
    found += _samples(host, subtract(left, union(host.os_calls.spans)), most)
    return sorted(found, key=lambda row: (-row.ns, row.start_ns))[:most]


def _calls(host: HostActivity, lane: NamedRows, spans: Intervals, table: str, most: int) -> list[EvidenceRow]:
    inside = coverage(spans, lane.spans)
    rows = []
    for at in _longest(inside, lane.spans.start, most):
        correlation = int(host.api_calls.rows.correlation[lane.row[at]]) if table == RUNTIME else 0
        name = lane.names[int(lane.name[at])]
        rows.append(_row(host, table, name, int(lane.spans.start[at]), int(inside[at]), correlation))
    return rows


def _samples(host: HostActivity, spans: Intervals, most: int) -> list[EvidenceRow]:
    position = host.samples.position
    first, behind = np.searchsorted(position, spans.start), np.searchsorted(position, spans.end)
    sampled = spans[behind > first]
    at, period = first[behind > first], host.samples.period_ns
    ns = np.minimum(sampled.end - sampled.start, (behind - first)[behind > first] * period)
    return [
        _row(host, SAMPLES, "CPU sample", int(position[at[each]]), int(ns[each]))
        for each in _longest(ns, sampled.start, most)
    ]


def _longest(ns: IntArray, start: IntArray, most: int) -> list[int]:
    order = longest(ns, start, most)
    return [at for at in order.tolist() if ns[at] > 0]


def _row(host: HostActivity, table: str, name: str, position: int, ns: int, correlation: int = 0) -> EvidenceRow:
    axis = host.axis
    return EvidenceRow(
        table=table,
        name=name,
        start_ns=int(axis.time(np.array([position]))[0]),
        ns=ns,
        thread=int(axis.threads[position // axis.stride]),
        correlation=correlation if correlation > 0 else None,
    )


HOST, STARTUP = "host", "startup"
PTX_COMPILER = re.compile("ptxjitcompiler|nvJitLink|nvrtc", re.IGNORECASE)
FOR_THIS_GPU = "Compile for the architecture of this GPU (nvcc -gencode)."
MOST_CALLS, FEWEST_SAMPLES = 3, 4
"""Calls that are named, and CPU samples that show what a call does."""
PARTS_OF_START = {
    MPI_INIT: (
        "MPI_Init",
        "Starting MPI takes this time once: compare transports and the start of processes of the MPI library.",
    ),
    COMPILING: (
        "code is compiled at run time",
        "Keep the compiled code: cache it between runs, or compile ahead of time.",
    ),
}
"""What the program did in parts of the start, and how to shorten that."""


def before_findings(
    device: str,
    judged: JudgedTime,
    start: Start | None,
    samples: SampleRows,
    chains: CallChains,
    thresholds: FindingThresholds,
) -> list[Finding]:
    """What a device's program did before its first work, by bottleneck, from the smallest share of all its time on.
    `share` is relative to the judged time inside the window and may exceed 1. `samples` are those of all
    threads, `chains` their call chains."""
    if start is None:
        return []
    sampled = _sampled(start, samples, chains)
    least = thresholds.smallest * (judged.ns + sum(start.account.values()))
    return [
        replace(
            BEFORE_WORK.finding(device, judged.share(ns), thresholds),
            id="-".join(filter(None, ("f", BEFORE_WORK.id, bottleneck, part))),
            severity=severity(1.0, thresholds),
            title=f"{BEFORE_WORK.title}: {_label(bottleneck, part)}",
            ceiling_ns=ns if promised(bottleneck) else 0,
            confidence=_confidence(start, bottleneck, part, spans),
            evidence=[
                f"{format_ns(ns)} before the first work of the device",
                *_inferred(start, bottleneck, part, spans),
                *([sampled] if sampled and bottleneck == HOST else []),
            ],
            advice=[
                *(_compiled(start, spans, chains) if bottleneck == STARTUP and not part else []),
                *_advice(bottleneck, part),
                *BEFORE_WORK.advice.plain,
            ],
            rows=start_rows(start, spans, thresholds.rows),
            chain=[
                f"{_label(bottleneck, part)} for {format_ns(ns)}" + (": " + calls if calls else ""),
                BEFORE_WORK.fix,
            ],
            bottleneck=bottleneck,
            variant=part,
            summary=f"{_label(bottleneck, part)} before the first work of the GPU {format_ns(ns)}"
            + (say(" ({})", inside) if (inside := calls or (sampled if bottleneck == HOST else "")) else ""),
        )
        for bottleneck, part, spans in _parts(start)
        if (ns := spans.total()) >= least
        for calls in (_calls_in(start, spans) if bottleneck == STARTUP else "",)
    ]


def _confidence(start: Start, bottleneck: str, part: str, spans: Intervals) -> float:
    """The share of CUDA's own start that calls show; the rest is inferred, as nothing else is recorded there."""
    return 1.0 if bottleneck != STARTUP or part else round(_in_calls(start, spans) / max(spans.total(), 1), 4)


def _in_calls(start: Start, spans: Intervals) -> int:
    """For how long, in ns, the thread is in calls that have rows."""
    host = start.host
    return common_ns(union(host.api.spans, host.os_calls.spans, host.overhead.spans), spans)


def _inferred(start: Start, bottleneck: str, part: str, spans: Intervals) -> list[Sentence]:
    ns = spans.total() - _in_calls(start, spans)
    if bottleneck != STARTUP or part or ns < NOTABLE * spans.total():
        return []
    return [f"for {format_ns(ns)} of it nothing is recorded: that CUDA starts there is inferred"]


def _parts(start: Start) -> Iterator[tuple[str, str, Intervals]]:
    """Its bottlenecks, with start-up in parts."""
    for bottleneck in start.spans:
        parts = start.parts if bottleneck == STARTUP else ()
        yield from ((bottleneck, part, start.own(bottleneck, part)) for part in parts)
        yield bottleneck, "", start.own(bottleneck)


def _calls_in(start: Start, spans: Intervals) -> Sentence:
    """`cudaMalloc 178 ms and cudaLaunchKernel 39.2 ms`: the calls with most of a part of the start."""
    time = {word: common_ns(did, spans) for word, did in start.did.items() if typed.has_names(word)}
    large = [word for word in sorted(time, key=lambda word: -time[word]) if time[word] >= NOTABLE * spans.total()]
    named = [say("{} {}", word, format_ns(time[word])) for word in large[:MOST_CALLS]]
    return typed.listed(named) if named else ""


def _compiled(start: Start, spans: Intervals, chains: CallChains) -> list[Sentence]:
    """A sentence for each call with a notable part of the start, if most CPU samples in it are in a compiler."""
    found: list[Sentence] = []
    for word, did in start.did.items():
        time = intersect(did, spans)
        code = sampled_code(start.host.samples.inside(time), chains)
        compiling = sum(count for name, count in code.functions.items() if PTX_COMPILER.search(name))
        notable = time.total() >= NOTABLE * spans.total() and code.count >= FEWEST_SAMPLES
        if notable and 2 * compiling > code.count:
            samples = f"{compiling} of {format_count(code.count)} CPU samples in it are in the compiler of the driver"
            found.append(say("{} compiles PTX, for {}: {}. {}", word, format_ns(time.total()), samples, FOR_THIS_GPU))
    return found


def _label(bottleneck: str, part: str) -> str:
    return PARTS_OF_START[part][0] if part else BOTTLENECKS[bottleneck].in_start or bottleneck


def _advice(bottleneck: str, part: str) -> tuple[str, ...]:
    return PARTS_OF_START[part][1:] if part else BOTTLENECKS[bottleneck].advice


def _sampled(start: Start, samples: SampleRows, chains: CallChains) -> Sentence:
    """The functions in all CPU samples of its host code, and how much of it these stand for if that is less than
    half; then those in samples of other threads, while the thread has none. Empty without samples."""
    spans, mine = start.spans.get(HOST, Intervals.empty()), start.host.samples
    own = sampled_code(mine.inside(spans), chains)
    others = sampled_code(samples.id[_of_others(start, samples, subtract(spans, mine.time))], chains)
    known = mine.standing_for(own.count, spans.total())
    part = (
        f" that {'stands' if own.count == 1 else 'stand'} for {format_ns(known)} of it"
        if 2 * known < spans.total()
        else ""
    )
    said = [own.words(part), others.words(" of other threads while it waits", 1)]
    return joined("; ", filter(None, said))


def _of_others(start: Start, samples: SampleRows, waiting: Intervals) -> BoolArray:
    """Samples of the other threads of the process inside a set on the axis, which is of one thread."""
    axis = start.host.axis
    time = union(Intervals(axis.time(waiting.start), axis.time(waiting.start) + (waiting.end - waiting.start)))
    thread = int(axis.threads[0])
    there = (process_of(samples.thread) == process_of(thread)) & (samples.thread != thread)
    return there & contains(time, samples.time)
