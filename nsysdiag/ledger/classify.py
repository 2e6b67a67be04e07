"""The split of every gap: each nanosecond goes to the first cause, in order of precedence, that has evidence for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, union
from nsysdiag.causes import CALL_ORDER, CAUSES, blocking_copy
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import CallFacts, HostEvidence, Layer, named
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.host import HostActivity
from nsysdiag.gaps import stream_waits
from nsysdiag.gaps.launch_frame import Case, DeviceSide, Frame
from nsysdiag.ledger.assignment import SliceCollector, Slices

FALLBACK = "uncovered"
OTHER_DEVICE = "waits for another device"
_WHOLE = {
    Case.DISPATCH: "dispatch",
    Case.UNIFIED_MEMORY: "unified_memory",
    Case.INTRA_GRAPH: "intra_graph",
    Case.UNKNOWN: "launch_unknown",
}
_NEVER_UNTRACED = (Case.DISPATCH, Case.UNIFIED_MEMORY)


@dataclass(frozen=True, slots=True)
class LayeredEvidence:
    """The layers of every host-side cause, for time before launches and for time inside them; made once a trace."""

    host: HostActivity
    facts: CallFacts
    before: dict[str, list[Layer]]
    inside: dict[str, list[Layer]]
    own_copy_blocks: BoolArray


def layer_evidence(evidence: HostEvidence) -> LayeredEvidence:
    """Runs the host-side rules of all causes."""
    copies = evidence.host.api.take(named(evidence.host.api, blocking_copy.COPIES))
    blocks = np.zeros(len(evidence.facts.pageable), dtype=np.bool_)
    blocks[copies.row[blocking_copy.is_blocking(evidence, copies)]] = True
    inside = {cause.id: cause.call(evidence) for cause in CAUSES.values() if cause.call is not None}
    return LayeredEvidence(
        host=evidence.host,
        facts=evidence.facts,
        before={cause.id: cause.host(evidence) for cause in CAUSES.values() if cause.host is not None},
        inside={name: inside[name] for name in CALL_ORDER if name in inside},
        own_copy_blocks=blocks,
    )


def classify(side: DeviceSide, layered: LayeredEvidence, untraced: Intervals, disabled: tuple[str, ...]) -> Slices:
    """Every gap of a device, split. `untraced` is the set of time in untraced graphs that concern the device; the time
    of `disabled` causes stays without explanation."""
    splitter = _Splitter(side, layered, untraced, disabled)
    splitter.untraced_time()
    splitter.whole_gaps()
    splitter.before_calls()
    loading = splitter.inside_calls()
    splitter.latency()
    splitter.device_side(loading)
    return splitter.collector.finish()


class _Splitter:
    def __init__(
        self, side: DeviceSide, layered: LayeredEvidence, untraced: Intervals, disabled: tuple[str, ...]
    ) -> None:
        self.side = side
        self.frame: Frame = side.frame
        self.layered = layered
        self.untraced = untraced
        self.disabled = disabled
        self.collector = SliceCollector(list(CAUSES))
        self.axis: ThreadAxis = layered.host.axis
        calls = side.activity.api_calls
        thread = calls.rows.thread[self.frame.call] if len(calls.rows) else self.frame.call
        self.lane = np.where(self.frame.call >= 0, self.axis.rank(thread), -1)
        launch = side.device.launch[side.device.operations.graph_node > 0]
        self.nodes = np.bincount(launch[launch >= 0], minlength=len(calls.rows))
        self.subject = ~np.isin(self.frame.case, _NEVER_UNTRACED)

    def untraced_time(self) -> None:
        """Time in untraced graphs is taken out before any other evidence."""
        gaps = self.frame.gaps
        spans, owner = self.frame.region(gaps.opened, gaps.closed, self.subject)
        claimed, _, _ = claim(Owned.of(spans, owner), self.untraced)
        self._give("graph_untraced", claimed, text="graph launched, nothing recorded")

    def whole_gaps(self) -> None:
        """Gaps whose case alone says it all."""
        for case, cause in _WHOLE.items():
            self._give(cause, self._region(self.frame.gaps.opened, self.frame.gaps.closed, self.frame.case == case))

    def before_calls(self) -> None:
        """From the opening of the gap to the launch call, by what the launching thread did."""
        left = self._region(self.frame.gaps.opened, self.frame.call_start, self.frame.case == Case.LATE)
        left = self._by_layers(self._placed(left), self.layered.before)
        self._give(FALLBACK, self._timed(left))

    def inside_calls(self) -> BoolArray:
        """The call's own part; returns which gaps have evidence of loading in it."""
        chosen = (self.frame.case == Case.LATE) | (self.frame.case == Case.ISSUING)
        left = self._region(self.frame.call_start, self.frame.call_end, chosen)
        loading = self._loads(chosen)
        left = self._timed(self._by_layers(self._placed(left), self.layered.inside))
        facts, call = self.layered.facts, self.frame.call
        own = {
            "module_load": (facts.first_launch, "first launch of this kernel"),
            "context_init": (facts.creates_context, "first call of the process"),
            "blocking_copy": (self.layered.own_copy_blocks, None),
        }
        for cause, (flags, text) in own.items():
            if len(flags) == 0:
                continue
            theirs, left = _divide(left, flags[call] & (call >= 0))
            self._give(cause, theirs, text=text or self._call_names(theirs), label=self._copy_labels(cause, theirs))
            if cause == "module_load":
                loading[theirs.owner] = True
        self._give("launch_call", left, text=self._call_names(left))
        return loading

    def _loads(self, chosen: BoolArray) -> BoolArray:
        """Which of the chosen gaps have a launch call with evidence of loading anywhere in it: before the gap opened
        and under evidence of other causes, too."""
        owner = np.flatnonzero(chosen & (self.lane >= 0))
        begin, end = self.frame.whole_call.start[owner], self.frame.whole_call.end[owner]
        calls = Intervals(*(self.axis.position(self.lane[owner], side) for side in (begin, end)))
        loading = np.zeros(len(self.frame.gaps), dtype=np.bool_)
        for layer in self.layered.inside.get("module_load", ()):
            loading[owner] |= coverage(union(layer.spans), calls) > 0
        return loading

    def latency(self) -> None:
        """From the end of the call for as long as a launch may take, unless the operation waited for an event."""
        frame = self.frame
        known = np.isin(frame.case, (Case.LATE, Case.ISSUING, Case.ISSUED))
        waits = frame.event_wait
        self._give(
            "launch_latency", self._region(frame.call_end, frame.settled, known & ~waits), text="launch on its way"
        )
        held = self._region(frame.call_end, frame.settled, known & waits)
        self._give("stream_wait", held, label=self._wait_labels(held), text="cudaStreamWaitEvent")

    def device_side(self, loading: BoolArray) -> None:
        """After the latency: code still on its way, then the device-side rules in order."""
        frame = self.frame
        known = np.isin(frame.case, (Case.LATE, Case.ISSUING, Case.ISSUED, Case.BEFORE_CAPTURE))
        left = self._region(frame.settled, frame.gaps.closed, known)
        arriving, left = _divide(left, loading & ~frame.event_wait)
        self._give("module_load", arriving, text="code on its way to the device")
        for cause in CAUSES.values():
            if cause.device is not None:
                left = self._explained(cause, left)
        self._give(FALLBACK, left)

    def _explained(self, cause: Cause, left: Owned) -> Owned:
        if cause.device is None or len(left) == 0:
            return left
        answer = cause.device(self.side)
        codes = np.array([self.collector.label(label) for label in answer.labels] + [-1], dtype=np.int64)
        theirs, left = _divide(left, answer.whole)
        self._give(cause.id, theirs, label=codes[answer.label[theirs.owner]])
        operations = self.side.device.operations
        for process, slices in answer.slices:
            owned, other = _divide(left, operations.process[self.frame.gaps.next] == process)
            claimed, rest, _ = claim(owned, slices)
            self._give(cause.id, claimed, text="time slice of another process")
            left = _merged(other, rest)
        return left

    def _wait_labels(self, pieces: Owned) -> IntArray:
        codes = np.array([self.collector.label(label) for label in stream_waits.LABELS] + [-1], dtype=np.int64)
        return codes[self.side.waits.label[pieces.owner]]

    def _copy_labels(self, cause: str, pieces: Owned) -> int | IntArray:
        if cause != "blocking_copy":
            return -1
        facts, call = self.layered.facts, self.frame.call[pieces.owner]
        names = [self.collector.label(label) for label in blocking_copy.LABELS]
        return np.select([facts.read_back[call], facts.pageable[call]], names[:2], names[2])

    def _call_names(self, pieces: Owned) -> IntArray:
        calls = self.side.activity.api_calls
        if len(calls.rows) == 0:
            return np.full(len(pieces), -1, dtype=np.int64)
        call = self.frame.call[pieces.owner]
        codes = self.collector.texts(calls.names)[calls.rows.name[call]]
        launches = np.flatnonzero(self.nodes[call] > 1)
        names = [f"{calls.names[calls.rows.name[row]]} of {self.nodes[row]:,} nodes" for row in call[launches].tolist()]
        codes[launches] = self.collector.texts(names)
        return codes

    def _region(self, low: IntArray, high: IntArray, chosen: BoolArray) -> Owned:
        """[low, high) of the chosen gaps inside the window, without time in untraced graphs."""
        spans, owner = self.frame.region(low, high, chosen)
        whole = Owned.of(spans, owner)
        if len(self.untraced) == 0 or len(whole) == 0:
            return whole
        exempt, subject = _divide(whole, ~self.subject)
        rest = claim(subject, self.untraced)[1]
        return exempt if len(rest) == 0 else rest if len(exempt) == 0 else _merged(exempt, rest)

    def _placed(self, pieces: Owned) -> Owned:
        return Owned.of(self.axis.place(self.lane[pieces.owner], pieces.spans), pieces.owner)

    def _timed(self, pieces: Owned) -> Owned:
        # In the order of the lanes, not of time: whoever takes these gives them away without another search.
        start = self.axis.time(pieces.spans.start)
        return Owned(Intervals(start, start + pieces.spans.end - pieces.spans.start), pieces.owner)

    def _by_layers(self, left: Owned, layers: dict[str, list[Layer]]) -> Owned:
        """Let each layer claim in turn, on the thread axis; returns what nobody claimed."""
        for cause, parts in layers.items():
            for layer in parts:
                if len(left) == 0 or len(layer) == 0:
                    continue
                claimed, left, source = claim(left, layer.spans)
                texts = self.collector.texts(layer.names)
                elsewhere = layer.device not in (None, self.side.device.number)
                label = self.collector.label(OTHER_DEVICE if elsewhere else layer.label)
                self._give(cause, self._timed(claimed), label=label, text=texts[layer.name[source]])
        return left

    def _give(
        self, cause: str, pieces: Owned, *, label: int | IntArray = -1, text: str | IntArray | None = None
    ) -> None:
        code: int | IntArray = -1
        if isinstance(text, str):
            code = int(self.collector.texts([text])[0])
        elif text is not None:
            code = text
        # A disabled cause still takes its time, so that no other is blamed for it, and leaves it unexplained.
        if cause in self.disabled:
            self.collector.add(FALLBACK, pieces)
        else:
            self.collector.add(cause, pieces, label=label, text=code)


def _divide(pieces: Owned, flags: BoolArray) -> tuple[Owned, Owned]:
    """The pieces of the gaps that are flagged, and the others."""
    chosen = flags[pieces.owner]
    return (
        Owned(pieces.spans[chosen], pieces.owner[chosen]),
        Owned(pieces.spans[~chosen], pieces.owner[~chosen]),
    )


def _merged(first: Owned, second: Owned) -> Owned:
    return Owned.of(
        Intervals(np.append(first.spans.start, second.spans.start), np.append(first.spans.end, second.spans.end)),
        np.append(first.owner, second.owner),
    )
