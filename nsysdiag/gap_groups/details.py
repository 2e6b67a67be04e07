"""The largest gaps in full: slices with their evidence, thread, neighbours, NVTX path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.groups import longest
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.causes import CAUSES, FALLBACK, places
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import pid_of, tid_of
from nsysdiag.events.nvtx import PlacedRanges, ranges_elsewhere
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.events.samples import Samples
from nsysdiag.fields import Sentence
from nsysdiag.gaps.gaps import LaunchCase, LaunchFrame
from nsysdiag.kernels.names import describe_operations
from nsysdiag.ledger.ledger import UNRESOLVED, Drained, Ledger, Slices
from nsysdiag.report import Gap, Root, Slice, Thread
from nsysdiag.stacks.call_sites import HostSide, places_of
from nsysdiag.stacks.samples import LeafSymbols, leaf_texts
from nsysdiag.typed import joined, say
from nsysdiag.units import format_ns
from nsysdiag.wakeups.wake_chain import WakeChains

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings

_SAMPLED = places(lambda cause: cause.sampled)
MOST_NAMES = 2
"""Calls that the evidence of a slice names, those with most time; the others are counted. It changes only the text."""


class GapContext(Struct, frozen=True):
    """What all gaps of a device have in common when they are described."""

    device: DeviceTimeline
    frame: LaunchFrame
    slices: Slices
    ledger: Ledger
    drained: Drained
    lane: IntArray
    axis: ThreadAxis
    ranges: PlacedRanges
    strings: Strings
    thread_names: dict[int, str]
    samples: Samples
    leaf_symbols: LeafSymbols
    wake_chains: WakeChains
    host_side: HostSide


def largest_gaps(context: GapContext, limit: int) -> IntArray:
    """The longest `limit` gaps (0: all), longest first, of equal ones the earliest first."""
    gaps = context.frame.gaps
    length = gaps.end - gaps.start
    return longest(length, gaps.start, limit or max(len(gaps), 1))


def gap_moments(frame: LaunchFrame) -> IntArray:
    """The moment at which each gap's NVTX path is read: the middle of the host's part, else the launch."""
    between = (frame.gaps.opened + frame.call_start) // 2
    launched = np.where(frame.call >= 0, frame.issue_start, frame.gaps.opened)
    return np.where(frame.case == LaunchCase.LATE, between, launched)


def describe_gaps(context: GapContext, chosen: IntArray) -> list[Gap]:
    """The gaps `chosen`, in that order."""
    gaps, frame, drained = context.frame.gaps, context.frame, context.drained
    before = describe_operations(context.device, gaps.previous[chosen], context.strings)
    after = describe_operations(context.device, gaps.next[chosen], context.strings)
    moments = gap_moments(frame.take(chosen))
    path, paths = context.ranges.path_codes(context.lane[chosen], moments)
    elsewhere = ranges_elsewhere(context.ranges.ranges, _threads(context, chosen), moments)
    number = np.full(len(gaps), -1, dtype=np.int32)
    number[chosen] = np.arange(len(chosen))
    slices = _slices_by_gap(context, number, [paths[code] for code in path.tolist()])
    length = gaps.end[chosen] - gaps.start[chosen]
    unknown = [sum(part.ns for part in parts if part.cause in UNRESOLVED) for parts in slices]
    known = 1 - np.array(unknown, dtype=np.int64) / np.maximum(length, 1)
    places = places_of(context.host_side, number, len(chosen))
    return [
        Gap(
            start_ns=int(gaps.start[gap]),
            end_ns=int(gaps.end[gap]),
            slices=slices[at],
            thread=_thread(context, int(context.lane[gap])),
            previous_op=before[at],
            next_op=after[at],
            nvtx=paths[int(path[at])],
            sync_drained=bool(drained.flag[gap]),
            drained_by=drained.names[int(drained.name[gap])] if drained.flag[gap] else None,
            root=_root(context, int(gap), slices[at]),
            confidence=round(float(known[at]), 4),
            call_site=places[at].site,
            nvtx_elsewhere=elsewhere[at],
        )
        for at, gap in enumerate(chosen.tolist())
    ]


def _root(context: GapContext, gap: int, slices: list[Slice]) -> Root | None:
    cause = int(context.ledger.dominant[gap])
    return context.wake_chains.root(gap, cause, sum(part.ns for part in slices if part.cause == list(CAUSES)[cause]))


def _threads(context: GapContext, chosen: IntArray) -> IntArray:
    """The globalTid of each gap's launching thread, -1 where there is none."""
    lane = context.lane[chosen]
    threads = context.axis.threads
    return np.where(lane >= 0, threads[np.maximum(lane, 0)], -1) if len(threads) else np.full(len(lane), -1)


def _thread(context: GapContext, lane: int) -> Thread | None:
    if lane < 0:
        return None
    identity = int(context.axis.threads[lane])
    return Thread(pid=pid_of(identity), tid=tid_of(identity), name=context.thread_names.get(identity))


def _slices_by_gap(context: GapContext, number: IntArray, paths: list[list[str]]) -> list[list[Slice]]:
    """The slices of the chosen gaps, one for each cause and gap, in the order in which they begin. `number` is the
    place of each gap among the chosen ones, -1 for the others."""
    rows = context.slices.rows
    mine = np.flatnonzero(taken(number, rows.gap) >= 0)
    mine = mine[np.lexsort((rows.start[mine], number[rows.gap[mine]]))]
    samples = _host_code(context, mine)
    borders = np.searchsorted(number[rows.gap[mine]], np.arange(len(paths) + 1))
    return [
        _merged_slices(context.slices, mine[low:high], paths[at], samples[low:high])
        for at, (low, high) in enumerate(zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True))
    ]


def _host_code(context: GapContext, mine: IntArray) -> list[Sentence]:
    """For each slice what the samples in it were in; empty for slices of other causes."""
    rows = context.slices.rows.take(mine)
    lane = context.lane[rows.gap]
    code = np.flatnonzero(np.isin(rows.cause, _SAMPLED) & (lane >= 0))
    low, high = (context.axis.position(lane[code], side[code]) for side in (rows.start, rows.end))
    texts: list[Sentence] = [""] * len(mine)
    for at, text in zip(code.tolist(), leaf_texts(context.samples, low, high, context.leaf_symbols), strict=True):
        texts[at] = text
    return texts


def _merged_slices(slices: Slices, part: IntArray, path: list[str], samples: list[Sentence]) -> list[Slice]:
    ids = list(CAUSES)
    total: dict[int, int] = {}
    texts: dict[int, dict[int, tuple[int, int]]] = {}
    sampled: dict[int, Sentence] = {}
    columns = (slices.rows.cause[part], slices.rows.text[part], slices.lengths(part))
    for at, (cause, text, ns) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        total[cause] = total.get(cause, 0) + ns
        count, sum_ns = texts.setdefault(cause, {}).get(text, (0, 0))
        texts[cause][text] = (count + 1, sum_ns + ns)
        sampled.setdefault(cause, "")
        sampled[cause] = max(sampled[cause], samples[at], key=lambda text: len(typed.plain(text)))
    merged = []
    for cause, ns in total.items():
        evidence = _evidence(slices, ids[cause], texts[cause], path)
        evidence += say("; samples in {}", sampled[cause]) if sampled[cause] else ""
        merged.append(Slice(cause=ids[cause], ns=ns, evidence=evidence))
    return merged


def _evidence(slices: Slices, cause: str, texts: dict[int, tuple[int, int]], path: list[str]) -> Sentence:
    """The names behind a slice, by time: `cudaStreamSynchronize`, `read × 12 (3.1 ms), poll (20 µs)`."""
    if cause == FALLBACK:
        return say("inside NVTX {}", typed.nvtx(path[-1])) if path else "no evidence"
    known = sorted(((ns, count, code) for code, (count, ns) in texts.items() if code >= 0), reverse=True)
    if not known:
        return CAUSES[cause].title
    parts = [slices.texts[code] + (f" × {count}" if count > 1 else "") for _, count, code in known]
    if len(parts) == 1:
        return parts[0]
    shown = [say("{} ({})", part, format_ns(ns)) for part, (ns, _, _) in zip(parts, known, strict=True)]
    more = len(shown) - MOST_NAMES
    return joined(", ", shown[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
