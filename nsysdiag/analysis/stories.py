"""The story of one spot: its title, where it is, its causal chain, its evidence and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.identity import IntArray, pid_of, tid_of
from nsysdiag.analysis import chains
from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.details import GapContext
from nsysdiag.analysis.evidence import HostEvidence
from nsysdiag.analysis.gap_keys import GapKeys
from nsysdiag.analysis.grouping import group_durations
from nsysdiag.analysis.kernel_names import normal_kernel
from nsysdiag.analysis.kinds import IN_COLLECTOR, IN_INTERPRETER, KINDS, Kind
from nsysdiag.analysis.leaves import kind_of_symbol
from nsysdiag.analysis.places import Blame, Shares
from nsysdiag.analysis.sightings import Sightings
from nsysdiag.analysis.spots import Spot
from nsysdiag.config import FindingThresholds
from nsysdiag.model import DeviceReport, EvidenceRow, Gap, Root, Thread
from nsysdiag.units import format_count, format_moment, format_ns

MOST_EVIDENCE, MOST_ADVICE, MOST_SYMBOLS, LONGEST_PLACE = 4, 3, 2, 60
MOST_SAMPLES = 5_000
_ALMOST_ALL = 0.95
# A function, as opposed to a sentence: `cudaMalloc`, `cudaMalloc in cublasCreate`, `cudaGraphLaunch of 12 nodes`.
_FUNCTION = re.compile(r"[^\s]+( in [^\s]+| of [\d,]+ nodes)?")


@dataclass(frozen=True, slots=True)
class Ground:
    """What findings of a device are made from. `blame` is the cause that each slice counts for."""

    context: GapContext
    evidence: HostEvidence
    keys: GapKeys
    blame: Blame
    thresholds: FindingThresholds


@dataclass(frozen=True, slots=True)
class Story:
    """What a finding says beside its figures."""

    title: str
    kind: str
    path: list[str]
    signature: str
    call: str | None
    gaps: int
    confidence: float
    evidence: list[str]
    advice: list[str]
    chain: list[str]
    rows: list[EvidenceRow]


@dataclass(frozen=True, slots=True)
class _Weights:
    """The time of a spot by gap: `gap` are its gaps in order of time, `ns` what each contributes, never 0. Where the
    gaps that its calls opened are more than what it loses itself, they are those gaps."""

    gap: IntArray
    ns: IntArray

    @property
    def longest(self) -> int:
        """The gap that contributes most, of equal ones the first."""
        return int(self.gap[np.argmax(self.ns)])

    @property
    def median_ns(self) -> int:
        """The lower of the two middle ones where their number is even."""
        return int(np.sort(self.ns)[(len(self.ns) - 1) // 2])

    def leading(self, code: IntArray) -> tuple[int, float]:
        """Of a code for each gap of the device the one with most time here, and its share."""
        groups = group_durations(code[self.gap], self.ns)
        return int(groups.code[0]), int(groups.total[0]) / int(self.ns.sum())


def story_of(device: DeviceReport, ground: Ground, sightings: Sightings, shares: Shares, spot: Spot) -> Story:
    """Everything that is said about a spot; `shares` are its own."""
    drained = spot.drained_ns > spot.lost_ns
    weights = _weights(shares, drained=drained)
    slices = shares.slice[shares.slice >= 0]
    symbols = _symbols(ground, slices) if spot.cause == "host_compute" else {}
    kind, alone = _kind(shares, spot, symbols, ground.thresholds)
    path = _path(ground.keys, weights, spot)
    labels = _by_words(ground.blame.label[slices], ground.blame.labels, ground.context.slices.ns[slices])
    calls = _calls(ground, shares, slices)
    root = _root(device, ground, weights)
    return Story(
        title=_title(spot, kind, path, alone=alone),
        kind=kind.id,
        path=path,
        signature=ground.keys.signature(_member(ground.keys, weights)),
        call=next((name for name in (*symbols, *calls) if _FUNCTION.fullmatch(name)), None),
        gaps=len(weights.gap),
        confidence=_confidence(device, ground, spot, slices, root),
        evidence=_evidence(ground, spot, weights, labels, calls, symbols),
        advice=_advice(kind, CAUSES[spot.cause].advice),
        chain=_chain(ground, spot, weights, kind, path, _label(labels, spot), next(iter(calls), None), root, symbols),
        rows=_draining(ground, sightings, weights) if drained else sightings.rows(slices, ground.thresholds.rows),
    )


def _weights(shares: Shares, *, drained: bool) -> _Weights:
    ns = shares.drained if drained else shares.lost
    gap, code = np.unique(shares.gap, return_inverse=True)
    total = np.zeros(len(gap), dtype=np.int64)
    np.add.at(total, code, ns)
    return _Weights(gap[total > 0], total[total > 0])


def _kind(shares: Shares, spot: Spot, symbols: dict[str, int], thresholds: FindingThresholds) -> tuple[Kind, bool]:
    """The kind with most of the spot's time, and whether that is almost all of it."""
    kinds = KINDS[spot.cause]
    groups = group_durations(shares.kind, np.maximum(shares.lost, shares.drained))
    kind, share = kinds[int(groups.code[0])], int(groups.total[0]) / max(int(groups.total.sum()), 1)
    samples = sum(symbols.values())
    for hint, word, least in (
        (IN_COLLECTOR, "garbage collector", thresholds.collector),
        (IN_INTERPRETER, "interpreter", thresholds.interpreter),
    ):
        inside = sum(count for symbol, count in symbols.items() if kind_of_symbol(symbol) == word)
        if samples and inside >= least * samples and kind is kinds[-1]:
            return next(each for each in kinds if each.hint == hint), True
    return kind, share >= _ALMOST_ALL


def _title(spot: Spot, kind: Kind, path: list[str], *, alone: bool) -> str:
    """The cause, its kind where that is almost all of it, and the place where the cause has several."""
    title = CAUSES[spot.cause].title
    if spot.rest:
        return f"{title}, elsewhere"
    title = f"{title}: {kind.title}" if kind.title and alone else title
    return f"{title}, in {path[-1][:LONGEST_PLACE]}" if spot.path is not None and path else title


def _label(labels: dict[str, tuple[int, int]], spot: Spot) -> str:
    """The label of most of the spot's time, empty for none."""
    label, (ns, _) = next(iter(labels.items()), ("", (0, 0)))
    return label if 2 * ns > spot.lost_ns else ""


def _path(keys: GapKeys, weights: _Weights, spot: Spot) -> list[str]:
    """The NVTX path of the spot: its own, that of most of its time, or what all of its paths begin with."""
    if spot.path is not None:
        return keys.paths[spot.path]
    leading, share = weights.leading(keys.path)
    if share > 0.5:
        return keys.paths[leading]
    paths = [keys.paths[code] for code in np.unique(keys.path[weights.gap]).tolist()]
    common: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return common


def _member(keys: GapKeys, weights: _Weights) -> int:
    """A gap of the signature with most of the spot's time."""
    leading, _ = weights.leading(keys.code)
    return int(weights.gap[np.argmax(keys.code[weights.gap] == leading)])


def _by_words(code: IntArray, words: list[str], ns: IntArray) -> dict[str, tuple[int, int]]:
    """Time and number of pieces by word, most time first; pieces without one are left out."""
    known = code >= 0
    groups = group_durations(code[known], ns[known])
    return {
        words[each]: (total, count)
        for each, total, count in zip(groups.code.tolist(), groups.total.tolist(), groups.count.tolist(), strict=True)
    }


def _calls(ground: Ground, shares: Shares, slices: IntArray) -> dict[str, tuple[int, int]]:
    """The calls behind the spot by time; where it has no time of its own, those that emptied the queue."""
    context = ground.context
    found = _by_words(context.slices.rows.text[slices], context.slices.texts, context.slices.ns[slices])
    if found:
        return found
    gaps = shares.gap[shares.slice < 0]
    return _by_words(context.drained.name[gaps], context.drained.names, shares.drained[shares.slice < 0])


def _symbols(ground: Ground, slices: IntArray) -> dict[str, int]:
    """What the CPU samples inside the longest of the slices were in: functions by number of samples."""
    context = ground.context
    rows = context.slices.rows.take(slices[np.argsort(-context.slices.ns[slices], kind="stable")])
    lane = context.lane[rows.gap]
    low, high = (context.axis.position(np.maximum(lane, 0), side) for side in (rows.start, rows.end))
    first, behind = (np.searchsorted(context.samples.position, side) for side in (low, high))
    count = np.where(lane >= 0, behind - first, 0)
    count = np.where(np.cumsum(count) <= MOST_SAMPLES, count, 0)
    sample = np.arange(count.sum()) + np.repeat(first - (np.cumsum(count) - count), count)
    if len(sample) == 0:
        return {}
    code, names = context.leaf_symbols(context.samples.id[sample])
    present, number = np.unique(code[code >= 0], return_counts=True)
    found = {names[each]: times for each, times in zip(present.tolist(), number.tolist(), strict=True)}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _root(device: DeviceReport, ground: Ground, weights: _Weights) -> Root | None:
    """Who ended the wait in the gap with most of the spot's time, where the report describes that gap."""
    start = int(ground.context.frame.gaps.start[weights.longest])
    gap: Gap | None = next((each for each in device.gaps if each.start_ns == start), None)
    return gap.root if gap is not None else None


def _confidence(device: DeviceReport, ground: Ground, spot: Spot, slices: IntArray, root: Root | None) -> float:
    """Coverage is about the host: what the device did is known, what nobody knows is not. Time that only counts for the
    cause because wake-ups were followed is as sure as they are."""
    rule = CAUSES[spot.cause]
    if rule.unresolved:
        return 0.0
    known = 1.0 if rule.accepted or device.coverage is None else device.coverage
    ns = ground.context.slices.ns[slices]
    moved = ground.blame.cause[slices] != ground.context.slices.rows.cause[slices]
    share = int(ns[moved].sum()) / max(int(ns.sum()), 1)
    return round(known * (1 - share + share * (root.confidence if root is not None else 0.5)), 4)


def _advice(kind: Kind, general: tuple[str, ...]) -> list[str]:
    """What to do about this kind, and one general sentence; where the kind has no advice of its own, the cause's."""
    return [*kind.advice, *general[:1]] if kind.advice else list(general[:MOST_ADVICE])


def _evidence(
    ground: Ground,
    spot: Spot,
    weights: _Weights,
    labels: dict[str, tuple[int, int]],
    calls: dict[str, tuple[int, int]],
    symbols: dict[str, int],
) -> list[str]:
    """Kinds of the cause, the calls with most of its time, what CPU samples were in, its longest gap, and the gaps that
    it drained."""
    lines = [f"{label}: {format_ns(ns)}" for label, (ns, _) in list(labels.items())[:MOST_EVIDENCE]]
    if spot.lost_ns:
        lines += [
            f"{call}: {format_ns(ns)} in {format_count(count)} {'piece' if count == 1 else 'pieces'}"
            for call, (ns, count) in list(calls.items())[:MOST_EVIDENCE]
            if call not in labels and _FUNCTION.fullmatch(call)
        ]
    if symbols:
        counted = (f"{symbol} × {format_count(count)}" for symbol, count in list(symbols.items())[:MOST_EVIDENCE])
        lines.append(f"CPU samples in {', '.join(counted)}")
    start = int(ground.context.frame.gaps.start[weights.longest])
    lines.append(f"longest: {format_ns(int(weights.ns.max()))} in the gap at {format_moment(start)}")
    if spot.drained_ns:
        lines.append(f"{format_ns(spot.drained_ns)} of gaps began when such a call had emptied the queue")
    return lines


def _chain(
    ground: Ground,
    spot: Spot,
    weights: _Weights,
    kind: Kind,
    path: list[str],
    label: str,
    call: str | None,
    root: Root | None,
    symbols: dict[str, int],
) -> list[str]:
    cause = spot.cause
    threads, others = _threads(ground.context, weights)
    first = chains.opening(
        cause,
        call=call,
        label=label,
        thread=chains.thread_words(threads, others),
        code=", ".join(normal_kernel(symbol) for symbol in list(symbols)[:MOST_SYMBOLS]),
    )
    effect = chains.effect(
        cause,
        total_ns=int(weights.ns.sum()),
        longest_ns=int(weights.ns.max()),
        median_ns=weights.median_ns,
        count=len(weights.gap),
        drained=spot.drained_ns > spot.lost_ns,
    )
    following = ground.keys.next_names[int(ground.keys.following[_member(ground.keys, weights)])]
    return [*(chains.from_root(root, cause) or [first]), effect, chains.shown(following, path), kind.fix]


def _threads(context: GapContext, weights: _Weights) -> tuple[list[Thread], int]:
    """The launching thread with most of the time, and the number of others."""
    known = context.lane[weights.gap] >= 0
    groups = group_durations(context.lane[weights.gap][known], weights.ns[known])
    if len(groups.code) == 0:
        return [], 0
    identity = int(context.axis.threads[int(groups.code[0])])
    name = context.thread_names.get(identity)
    return [Thread(pid=pid_of(identity), tid=tid_of(identity), name=name)], len(groups.code) - 1


def _draining(ground: Ground, sightings: Sightings, weights: _Weights) -> list[EvidenceRow]:
    """The calls that emptied the queue before the longest gaps."""
    order = np.argsort(-weights.ns, kind="stable")[: ground.thresholds.rows]
    pairs = [(int(weights.gap[at]), int(weights.ns[at])) for at in order.tolist()]
    return [sightings.draining_call(gap, ns) or sightings.next_operation(gap, ns) for gap, ns in pairs]
