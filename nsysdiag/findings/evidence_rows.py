"""The rows of the trace behind slices of idle time: what a reader can look up with one SELECT."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import longest
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.causes import CAUSES, thread_states
from nsysdiag.causes.cause import Cause, EvidenceRows
from nsysdiag.events.calls import CallRows
from nsysdiag.events.host import COMPILED, MPI_TABLES, OVERHEAD_OF_NSYS
from nsysdiag.events.identity import process_of
from nsysdiag.events.operations import table_of
from nsysdiag.events.rows import NamedRows
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import EvidenceRow
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.kernels.names import operation_names
from nsysdiag.ledger.classify import LayeredEvidence

RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_TRIED_PER_ROW = 4
"""Slices that are looked at for each row that is shown: several may lead to one row, and fewer rows would then be
shown. A round number: nothing depends on it closely."""


class Sightings(Struct, frozen=True):
    """Finds the rows behind the slices of one device; `own` is what the launching thread itself did in each.
    With `several` processes ids repeat, and operations need theirs to be distinguished."""

    context: GapContext
    evidence: LayeredEvidence
    own: IntArray
    several: bool

    @classmethod
    def of(cls, context: GapContext, evidence: LayeredEvidence, own: IntArray) -> Sightings:
        """The rows of a device's trace, by what its host side made calls from."""
        thread = evidence.host.api_calls.rows.thread
        several = len(thread) > 0 and process_of(int(thread.min())) != process_of(int(thread.max()))
        return cls(context, evidence, own, several)

    def rows(self, slices: IntArray, most: int) -> list[EvidenceRow]:
        """The rows behind the longest of `slices`, at most `most`, each once."""
        ns = self.context.slices.lengths(slices)
        order = longest(ns, self.context.slices.rows.start, most * _TRIED_PER_ROW, slices)
        found: dict[tuple[str, int, int | None], EvidenceRow] = {}
        for each in slices[order].tolist():
            row = self._row(each)
            found.setdefault((row.table, row.start_ns, row.thread), row)
        return list(found.values())[:most]

    def next_operation(self, gap: int, ns: int) -> EvidenceRow:
        """The operation that ended a gap."""
        return self.operation(int(self.context.frame.gaps.next[gap]), ns)

    def operation(self, row: int, ns: int) -> EvidenceRow:
        """An operation of the device, by its place in the device's operations."""
        operations = self.context.device.operations
        _, names = operation_names(self.context.device, np.array([row]), self.context.strings)
        correlation, process = int(operations.correlation[row]), int(operations.process[row])
        return EvidenceRow(
            table=table_of(operations, row),
            name=names[0],
            start_ns=int(operations.start[row]),
            ns=ns,
            correlation=correlation if correlation > 0 else None,
            process=process if self.several and process > 0 else None,
        )

    def launch(self, gap: int, ns: int) -> EvidenceRow | None:
        """The call that launched the operation after a gap."""
        call = int(self.context.frame.call[gap])
        return self._api(call, ns) if call >= 0 else None

    def call_from(self, position: int, ns: int) -> EvidenceRow:
        """The outermost API call that begins at a position of the thread axis, if one does."""
        calls = self.evidence.host.api
        return self._api(int(calls.row[np.searchsorted(calls.spans.start, position)]), ns)

    def _row(self, each: int) -> EvidenceRow:
        """The evidence row of one slice; if it has none, the operation that the device waited for."""
        rows, cause = self.context.slices.rows, list(CAUSES.values())[int(self.own[each])]
        found = (self._behind(each, place, cause) for place in cause.rows)
        ns = int(rows.end[each] - rows.start[each])
        return next((row for row in found if row is not None), None) or self.next_operation(int(rows.gap[each]), ns)

    def _behind(self, each: int, place: EvidenceRows, cause: Cause) -> EvidenceRow | None:
        """The row of one slice in the tables of one kind."""
        rows, host = self.context.slices.rows, self.evidence.host
        gap, start, ns = int(rows.gap[each]), int(rows.start[each]), int(rows.end[each] - rows.start[each])
        if place is EvidenceRows.LAUNCH:
            return self.launch(gap, ns)
        if place is EvidenceRows.SCHEDULING:
            return self._scheduled(gap, start, ns, on_cpu=cause is thread_states.HOST_COMPUTE)
        lane = {
            EvidenceRows.CALL: host.api,
            EvidenceRows.OS_CALL: host.os_calls,
            EvidenceRows.MPI_CALL: host.mpi,
            EvidenceRows.OVERHEAD: host.overhead,
        }[place]
        named = rows.text[each] >= 0 and place is not EvidenceRows.OVERHEAD
        at = self._covering(lane, gap, start, self.context.slices.texts[int(rows.text[each])] if named else "")
        if at is None:
            return None
        if place is EvidenceRows.CALL:
            return self._api(int(lane.row[at]), ns)
        table, name = _table(place, int(lane.kind[at])), lane.names[int(lane.name[at])]
        return self._at(int(lane.spans.start[at]), gap, table, name, ns)

    def _covering(self, lane: NamedRows, gap: int, time: int, text: Sentence) -> int | None:
        """The row of `lane` that holds the launching thread at `time`: the one shown as `text`, else the outermost."""
        thread = int(self.context.lane[gap])
        if thread < 0 or len(lane) == 0:
            return None
        position = self._position(thread, time)
        behind = int(np.searchsorted(lane.spans.start, position, side="right"))
        outer = behind - 1
        while outer >= 0 and not lane.outermost[outer]:
            outer -= 1
        inside = [at for at in range(max(outer, 0), behind) if lane.spans.end[at] > position]
        named = [at for at in inside if lane.shown_names[int(lane.shown[at])] == text]
        return next(iter(named or inside), None)

    def _position(self, thread: int, time: int) -> int:
        return int(self.context.axis.position(np.array([thread]), np.array([time]))[0])

    def _api(self, call: int, ns: int) -> EvidenceRow:
        calls: CallRows = self.evidence.host.api_calls.rows
        correlation = int(calls.correlation[call])
        return EvidenceRow(
            table=RUNTIME,
            name=self.evidence.host.api_calls.names[int(calls.name[call])],
            start_ns=int(calls.start[call]),
            ns=ns,
            thread=int(calls.thread[call]),
            correlation=correlation if correlation > 0 else None,
        )

    def _at(self, position: int, gap: int, table: str, name: str, ns: int) -> EvidenceRow | None:
        """A row that begins at a position of the axis; one that began before the axis does has lost its start."""
        axis = self.context.axis
        time = int(axis.time(np.array([position]))[0])
        if time <= axis.origin:
            return None
        thread = int(axis.threads[int(self.context.lane[gap])])
        return EvidenceRow(table=table, name=name, start_ns=time, ns=ns, thread=thread)

    def _scheduled(self, gap: int, start: int, ns: int, *, on_cpu: bool) -> EvidenceRow | None:
        """The scheduling event that began the state of the thread, else the first CPU sample of the slice."""
        thread = int(self.context.lane[gap])
        if thread < 0:
            return None
        low, high = self._position(thread, start), self._position(thread, start + ns)
        scheduling = self.evidence.host.scheduling
        spans: Intervals = scheduling.on_cpu if on_cpu else scheduling.out
        inside = np.flatnonzero((spans.start <= low) & (spans.end > low))
        name = "scheduled in" if on_cpu else "scheduled out"
        found = self._at(int(spans.start[inside[0]]), gap, "SCHED_EVENTS", name, ns) if len(inside) else None
        if found is not None or not on_cpu:
            return found
        samples = self.evidence.host.samples
        first, behind = (int(at) for at in np.searchsorted(samples.position, (low, high)))
        if first == behind:
            return None
        known = samples.standing_for(behind - first, ns)
        return self._at(int(samples.position[first]), gap, "COMPOSITE_EVENTS", "CPU sample", known)


def _table(place: EvidenceRows, kind: int) -> str:
    """The table of the rows of a lane that have this kind."""
    if place is EvidenceRows.OS_CALL:
        return "OSRT_API"
    if place is EvidenceRows.MPI_CALL:
        return MPI_TABLES[kind]
    if kind < OVERHEAD_OF_NSYS:
        return "CUPTI_ACTIVITY_KIND_OVERHEAD"
    return "CUPTI_ACTIVITY_KIND_JIT" if kind == COMPILED else "PROFILER_OVERHEAD"
