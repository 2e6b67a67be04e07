"""Jobs made by hand: operations of devices, without a trace."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpus import Gpu
from nsysdiag.events.operations import Category, Operations
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.iterations.loop import LAYER, STEP, Called, Loop
from nsysdiag.ledger.ledger import split_window
from nsysdiag.phases.phases import JobPhases, find_phases
from nsysdiag.phases.signal import DeviceSignal
from nsysdiag.trace.enums import CopyKind

MS = 1_000_000
UPLOAD, DOWNLOAD = int(CopyKind.HOST_TO_DEVICE), int(CopyKind.DEVICE_TO_HOST)
MIGRATION = int(CopyKind.UNIFIED_HOST_TO_DEVICE)
Span = tuple[int, int]
Column = IntArray


@dataclass
class Job:
    """What one device did, written down in time: `now` is where the next thing begins. Names are numbers."""

    now: int = 100 * MS
    rows: list[tuple[int, int, Category, int, int]] = field(default_factory=list)
    startup: list[Span] = field(default_factory=list)
    memory: list[Span] = field(default_factory=list)
    unknown: list[Span] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)

    def kernel(self, name: int, ns: int) -> Job:
        """A kernel, from now on."""
        return self._row(Category.KERNEL, name, -1, ns)

    def graph(self, ns: int) -> Job:
        """A graph that was recorded as a whole."""
        return self._row(Category.GRAPH, -1, -1, ns)

    def copy(self, kind: int, ns: int) -> Job:
        """A copy, from now on."""
        return self._row(Category.MEMCPY, -1, kind, ns)

    def idle(self, ns: int, why: str | None = None) -> Job:
        """Nothing for a while; `why` is the name of one of the lists."""
        if why is not None:
            getattr(self, why).append((self.now, self.now + ns))
        self.now += ns
        return self

    def steps(self, count: int, *parts: tuple[int, int], loop: bool = False, closed: bool = True) -> Job:
        """Steps of (name, ns) each: name 0 is idle time. With `loop` they are known."""
        starts = [self.now]
        for _ in range(count):
            for name, ns in parts:
                _ = self.idle(ns) if name == 0 else self.kernel(name, ns)
            starts.append(self.now)
        if loop:
            self.loops.append(steps_between(starts, closed=closed))
        return self

    def signal(self, number: int = 0, window: Span | None = None) -> DeviceSignal:
        """All of it."""
        rows = sorted(self.rows, key=lambda row: row[0])
        table = np.array([(start, end, int(category), name, kind) for start, end, category, name, kind in rows])
        table = table.reshape(-1, 5).astype(np.int64)
        device = _timeline(number, *table.T)
        launched = ~device.operations.migration
        whole = window or (int(table[launched, 0].min()), int(table[launched, 1].max()))
        parts = union(Intervals.of([whole]))
        return DeviceSignal(
            device=device,
            window=AnalysisWindow(parts, parts, "", narrowed=False),
            split=split_window(device, parts),
            startup=union(Intervals.of(self.startup)),
            memory=union(Intervals.of(self.memory)),
            unknown=union(Intervals.of(self.unknown)),
            loops=tuple(self.loops),
        )

    def phases(self, first_call_ns: int | None = None, *, narrowed: bool = False) -> JobPhases:
        """The phases of this job, that of one device."""
        return find_phases([self.signal()], first_call_ns, narrowed=narrowed)

    def _row(self, category: Category, name: int, kind: int, ns: int) -> Job:
        self.rows.append((self.now, self.now + ns, category, name, kind))
        self.now += ns
        return self


def _timeline(number: int, start: Column, end: Column, category: Column, name: Column, kind: Column) -> DeviceTimeline:
    nothing = np.full(len(start), -1, np.int64)
    operations = Operations(
        start=start.copy(),
        end=end.copy(),
        process=nothing,
        device=np.full(len(start), number),
        context=nothing,
        stream=nothing,
        correlation=nothing,
        category=category.copy(),
        name=name.copy(),
        short_name=name.copy(),
        graph_node=nothing,
        copy_kind=kind.copy(),
        src_kind=nothing,
        dst_kind=nothing,
        size=nothing,
        graph=np.where(category == Category.GRAPH, 0, -1),
        shape=nothing,
        copies=np.ones(len(start), np.int64),
    )
    return DeviceTimeline(
        number=number,
        key=f"gpu{number}",
        gpu=Gpu("GPU", None),
        gpu_id=None,
        ids=[(1, number)],
        operations=operations,
        launch=nothing,
        communication=np.zeros(len(start), np.bool_),
        running=operations.end > operations.start,
        stream_code=np.zeros(len(start), np.int32),
        malformed=0,
    )


def steps_between(borders: Column | list[int], *, named: bool = False, closed: bool = True) -> Loop:
    """Steps that follow each other."""
    times = np.array(borders, np.int64)
    left = np.zeros(len(times) - 1, np.bool_)
    return Loop(Called("step" if named else ""), times[:-1], times[1:], left, STEP if closed else LAYER)


def named(phases: JobPhases) -> list[str]:
    """The names of the phases."""
    return [phase.name for phase in phases.phases]


def borders(phases: JobPhases) -> list[int]:
    """Where the phases begin, and where the last one ends."""
    return [phase.start for phase in phases.phases] + [phases.phases[-1].end]


def assert_exact(phases: JobPhases, job: tuple[int, int]) -> None:
    """Phases touch and cover the window of the job."""
    assert (phases.start, phases.end) == job
    assert all(one.end == next_.start for one, next_ in zip(phases.phases, phases.phases[1:], strict=False))
    assert phases.phases[0].start <= job[0] < phases.phases[0].end or phases.phases[0].end == job[0]
    assert phases.phases[-1].end == job[1]
    assert all(phase.start < phase.end for phase in phases.phases)
    assert all(type(border) is int for border in borders(phases))
