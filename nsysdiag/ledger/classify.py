"""The split of every gap: each nanosecond goes to the first cause, in order of precedence, that has evidence for it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.claim import Owned, claim, within
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, subtract, union
from nsysdiag.causes import CAUSES, EVENT_WAIT, FALLBACK, IN_LAUNCH_CALL, LAUNCH_LATENCY, UNTRACED_GRAPH, launching
from nsysdiag.causes.cause import Cause, OwnCall
from nsysdiag.causes.evidence import FIRST_USE, CallFacts, EvidenceLayer, HostEvidence
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.fields import Sentence
from nsysdiag.gaps.gaps import (
    CALL_END,
    CALL_START,
    CLOSED,
    LABELS,
    OPENED,
    OTHER_DEVICE,
    SETTLED,
    Border,
    DeviceSide,
    LaunchCase,
    LaunchFrame,
)
from nsysdiag.ledger.ledger import SliceCollector, Slices
from nsysdiag.typed import say

NOTHING = Intervals.empty()
_NEVER_UNTRACED = (LaunchCase.DISPATCH, LaunchCase.UNIFIED_MEMORY)


class LayeredEvidence(Struct, frozen=True):
    """The layers of every host-side cause, for time before launches and inside them, and the launch calls that belong
    wholly to a cause; made once per trace."""

    host: HostActivity
    facts: CallFacts
    before: dict[str, list[EvidenceLayer]]
    inside: dict[str, list[EvidenceLayer]]
    own_call: dict[str, OwnCall]


def layer_evidence(evidence: HostEvidence) -> LayeredEvidence:
    """Runs the host-side rules of all causes."""
    in_call = sorted(CAUSES.values(), key=lambda cause: cause.call_order)
    return LayeredEvidence(
        host=evidence.host,
        facts=evidence.facts,
        before={cause.id: cause.host(evidence) for cause in CAUSES.values() if cause.host is not None},
        inside={cause.id: cause.call(evidence) for cause in in_call if cause.call is not None},
        own_call={cause.id: cause.own_call(evidence) for cause in in_call if cause.own_call is not None},
    )


def classify(
    side: DeviceSide,
    layered: LayeredEvidence,
    untraced: Intervals,
    disabled: tuple[str, ...],
    partial: Intervals = NOTHING,
) -> Slices:
    """Every gap of a device, split. `untraced` is the set of time in untraced graphs that concern the device; in
    `partial`, another set, missing nodes of graphs may have run. The time of `disabled` causes stays unexplained."""
    splitter = _Splitter(side, layered, untraced, disabled, partial)
    splitter.untraced_time()
    splitter.whole_gaps()
    splitter.before_calls()
    going_on = splitter.inside_calls()
    splitter.latency()
    splitter.device_side(going_on)
    return splitter.collector.finish()


class _Splitter:
    """Splits the gaps of one device; its public functions are the steps that `classify` takes one after the other."""

    def __init__(
        self,
        side: DeviceSide,
        layered: LayeredEvidence,
        untraced: Intervals,
        disabled: tuple[str, ...],
        partial: Intervals,
    ) -> None:
        self.side = side
        self.frame: LaunchFrame = side.frame
        self.layered = layered
        self.partial = subtract(partial, untraced)
        self.untraced = union(untraced, partial)
        self.collector = SliceCollector(disabled)
        self.give = self.collector.add
        self.axis: ThreadAxis = layered.host.axis
        calls = side.activity.api_calls
        self.lane = calls.rows.lanes_at(self.axis, self.frame.call)
        launch = side.device.launch[side.device.operations.graph_node > 0]
        self.nodes = np.bincount(launch[launch >= 0], minlength=len(calls.rows)) if len(launch) else launch
        self.subject = np.logical_and(*(self.frame.case != case for case in _NEVER_UNTRACED))

    def untraced_time(self) -> None:
        """Time in untraced graphs is taken out before any other evidence."""
        if len(self.untraced) == 0:
            return
        spans, owner = self.frame.region(OPENED, CLOSED, self.subject)
        dropped, left, _ = claim(Owned.of(spans, owner), self.partial)
        text = "graph launched, some of its nodes not recorded"
        self.give(UNTRACED_GRAPH, dropped, label=launching.NODES_MISSING, text=text)
        claimed, _ = within(left, self.untraced)
        self.give(UNTRACED_GRAPH, claimed, text="graph launched, nothing recorded")

    def whole_gaps(self) -> None:
        """Gaps whose case alone says it all."""
        for cause in CAUSES.values():
            if cause.case is not None:
                self.give(cause.id, self._region(OPENED, CLOSED, self.frame.case == cause.case))

    def before_calls(self) -> None:
        """From the opening of the gap to the launch call, by what the launching thread did."""
        left = self._region(OPENED, CALL_START, self.frame.case == LaunchCase.LATE)
        left = self._by_layers(self._placed(left), self.layered.before)
        self.give(FALLBACK, self._timed(left))

    def inside_calls(self) -> dict[str, BoolArray]:
        """The call's own part; for each cause that goes on after the call, the gaps with evidence of it in the call."""
        chosen = (self.frame.case == LaunchCase.LATE) | (self.frame.case == LaunchCase.ISSUING)
        left = self._region(CALL_START, CALL_END, chosen)
        going_on = {cause.id: self._in_call(cause.id, chosen) for cause in CAUSES.values() if cause.after_call}
        left = self._timed(self._by_layers(self._placed(left), self.layered.inside))
        for cause, own in self.layered.own_call.items():
            if len(own.flags) == 0:
                continue
            theirs, left = _divide(left, self._flagged(own.flags))
            label = own.labels_of(self.frame.call[theirs.owner])
            said = self.collector.texts([each.words for each in own.labels])
            text = said[label] if own.described else self._call_names(theirs)
            self.give(cause, theirs, text=text, label=self.collector.labels.codes(own.labels)[label])
            if cause in going_on:
                going_on[cause][theirs.owner] = True
        first, left = _divide(left, self._flagged(self.layered.facts.first_use))
        if len(first):
            self.give(IN_LAUNCH_CALL, first, text=self._call_names(first), label=FIRST_USE)
        self.give(IN_LAUNCH_CALL, left, text=self._call_names(left))
        return going_on

    def _flagged(self, flags: BoolArray) -> BoolArray:
        """A flag of the table of calls for the launch behind each gap."""
        call = self.frame.call
        return flags[call] & (call >= 0) if flags.any() else np.zeros(len(call), dtype=np.bool_)

    def _in_call(self, cause: str, chosen: BoolArray) -> BoolArray:
        """The chosen gaps whose launch call has evidence of the cause anywhere in it, even before the gap or below
        evidence of other causes."""
        found = np.zeros(len(self.frame.gaps), dtype=np.bool_)
        spans = union(*(layer.spans for layer in self.layered.inside.get(cause, ())))
        if len(spans):
            owner = np.flatnonzero(chosen & (self.lane >= 0))
            some = self.frame.take(owner)
            whole = Intervals(some.issue_start, some.issue_end)
            found[owner] = coverage(spans, self.axis.place(self.lane[owner], whole)) > 0
        return found

    def latency(self) -> None:
        """From the end of the call for as long as a launch may take, unless the operation waited for a known event."""
        frame = self.frame
        known = frame.host_known
        waits = frame.event_wait & self.side.waits.known
        on_its_way = self._region(CALL_END, SETTLED, known & ~waits)
        self.give(LAUNCH_LATENCY, on_its_way, text="launch on its way")
        held = self._region(CALL_END, SETTLED, known & waits)
        label = self.collector.labels.codes(LABELS)[self.side.waits.label[held.owner]]
        call = self.collector.texts([typed.api("cudaStreamWaitEvent")], are_calls=True)
        self.give(EVENT_WAIT, held, label=label, text=call)

    def device_side(self, going_on: dict[str, BoolArray]) -> None:
        """After the latency: what goes on after the call, then the device-side rules in order."""
        frame = self.frame
        known = frame.host_known | (frame.case == LaunchCase.BEFORE_CAPTURE)
        left = self._region(SETTLED, CLOSED, known)
        for name, gaps in going_on.items():
            arriving, left = _divide(left, gaps & ~frame.event_wait)
            label = CAUSES[name].after_call
            self.give(name, arriving, label=label, text=label.words if label else None)
        for cause in CAUSES.values():
            left = self._explained(cause, left)
        self.give(FALLBACK, left)

    def _explained(self, cause: Cause, left: Owned) -> Owned:
        """Let the device-side rule of a cause, if it has one, claim; returns what is left."""
        if cause.device is None or len(left) == 0:
            return left
        answer = cause.device(self.side)
        codes = self.collector.labels.codes(answer.labels)
        theirs, left = _divide(left, answer.whole)
        self.give(cause.id, theirs, label=codes[answer.label[theirs.owner]])
        operations = self.side.device.operations
        for process, slices in answer.slices:
            owned, other = _divide(left, operations.process[self.frame.gaps.next] == process)
            claimed, rest, _ = claim(owned, slices)
            self.give(cause.id, claimed, text="time slice of another process")
            left = _merged(other, rest)
        return left

    def _call_names(self, pieces: Owned) -> IntArray:
        calls = self.side.activity.api_calls
        if len(calls.rows) == 0:
            return np.full(len(pieces), -1, dtype=np.int64)
        call = taken(self.frame.call, pieces.owner)
        shown: list[Sentence] = [typed.api(each) for each in calls.names]
        codes = self.collector.texts(shown, are_calls=True)[taken(calls.rows.name, call)]
        most = int(self.nodes.max(initial=0))
        launches = np.flatnonzero(self.nodes[call] > 1) if most > 1 else np.empty(0, dtype=np.int64)
        graph = call[launches]
        kinds, kind = distinct(joint(calls.rows.name[graph], self.nodes[graph], most + 1))
        first = least_of_each(kind, np.arange(len(graph)), len(kinds))
        in_order = np.argsort(first)  # texts are numbered as they come
        names = [
            say("{} of {:,} nodes", shown[calls.rows.name[row]], self.nodes[row])
            for row in graph[first[in_order]].tolist()
        ]
        code = np.empty(len(kinds), dtype=codes.dtype)
        code[in_order] = self.collector.texts(names, are_calls=True)
        codes[launches] = code[kind]
        return codes

    def _region(self, low: Border, high: Border, chosen: BoolArray) -> Owned:
        """From `low` to `high` of the chosen gaps inside the window, without time in untraced graphs."""
        spans, owner = self.frame.region(low, high, chosen)
        whole = Owned.of(spans, owner)
        if len(self.untraced) == 0 or len(whole) == 0:
            return whole
        exempt, subject = _divide(whole, ~self.subject)
        rest = claim(subject, self.untraced)[1]
        return exempt if len(rest) == 0 else rest if len(exempt) == 0 else _merged(exempt, rest)

    def _placed(self, pieces: Owned) -> Owned:
        return Owned.of(self.axis.place(taken(self.lane, pieces.owner), pieces.spans), pieces.owner)

    def _timed(self, pieces: Owned) -> Owned:
        # In the order of the lanes, not of time: the caller uses them without another search.
        start = self.axis.time(pieces.spans.start)
        return Owned(Intervals(start, start + pieces.spans.end - pieces.spans.start), pieces.owner)

    def _by_layers(self, left: Owned, layers: dict[str, list[EvidenceLayer]]) -> Owned:
        """Let each layer claim in turn, on the thread axis; returns what no layer claimed."""
        for cause, parts in layers.items():
            for layer in parts:
                if len(left) == 0 or len(layer) == 0:
                    continue
                claimed, left, source = claim(left, layer.spans)
                texts = self.collector.texts(layer.names, are_calls=layer.are_calls)
                elsewhere = layer.device not in (None, self.side.device.number)
                label = OTHER_DEVICE if elsewhere else layer.label
                self.give(cause, self._timed(claimed), label=label, text=texts[layer.name[source]])
        return left


def _divide(pieces: Owned, flags: BoolArray) -> tuple[Owned, Owned]:
    """The pieces of the gaps that are flagged, and the others."""
    chosen = flags[pieces.owner]
    if not chosen.any():
        return Owned.empty(), pieces
    return (
        Owned(pieces.spans[chosen], pieces.owner[chosen]),
        Owned(pieces.spans[~chosen], pieces.owner[~chosen]),
    )


def _merged(first: Owned, second: Owned) -> Owned:
    return Owned.of(
        Intervals(np.append(first.spans.start, second.spans.start), np.append(first.spans.end, second.spans.end)),
        np.append(first.owner, second.owner),
    )
