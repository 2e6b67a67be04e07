"""A machine with GPUs, cores and processes, run once; then its trace and its truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.builder import TraceBuilder
from tests.simulator.actions import Channel, Mutex, Thread
from tests.simulator.capture import EVERYTHING, Capture
from tests.simulator.device import Collective, Context, Gpu
from tests.simulator.engine import Clock, Core
from tests.simulator.host import WAKE, Body, Process
from tests.simulator.recorder import record
from tests.simulator.truth import DeviceKey, DeviceTruth, device_truth, rows_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tests.simulator.counters import Counters

CAUSES = (
    "dispatch",
    "unified_memory",
    "graph_untraced",
    "launch_unknown",
    "intra_graph",
    "launch_latency",
    "stream_wait",
    "stream_barrier",
    "gpu_context_switch",
    "device_stall",
    "launch_call",
    "profiler_overhead",
    "sync",
    "blocking_copy",
    "memory_allocation",
    "context_init",
    "queue_full",
    "module_load",
    "graph_build",
    "cuda_api",
    "lock_wait",
    "io_wait",
    "os_memory",
    "sleep",
    "off_cpu",
    "blocked",
    "host_compute",
    "uncovered",
)
ZERO_UTC = 1_760_000_000 * 10**9
"""The simulation's time 0 in ns of UTC."""
TINY = frozenset({"dispatch", "launch_latency", "launch_call"})
"""Causes of a few microseconds a launch: where launch latency ends and stalling begins depends on thresholds."""


class Simulation:
    """Script processes and threads, `run`, then `write` traces of it and ask for their `truth`."""

    def __init__(self, gpus: int = 1) -> None:
        self.clock = Clock()
        self.latency: Callable[[], int] = lambda: WAKE
        self.returning: Callable[[], int] = lambda: 0
        self.gpus = [Gpu(self.clock, number, "NVIDIA A100-SXM4-80GB") for number in range(gpus)]
        self.processes: list[Process] = []
        self.noise: list[Callable[[TraceBuilder], object]] = []
        self.counters: Counters | None = None
        self.capture = EVERYTHING
        self._cores = 0

    def process(self, gpus: list[int] | None = None, *, name: str = "/usr/bin/python3") -> Process:
        """A process that sees these GPUs, in this order (None: all)."""
        seen = range(len(self.gpus)) if gpus is None else gpus
        process = Process(4242 + 17 * len(self.processes), name, [self.gpus[number] for number in seen])
        self.processes.append(process)
        return process

    def thread(
        self,
        process: Process,
        body: Callable[[Thread], Body],
        *,
        name: str = "python3",
        start: int = 0,
        share: Thread | None = None,
        loads: str = "",
        frames: tuple[str, ...] = (),
    ) -> Thread:
        """A thread that starts at `start` on a core of its own, or on that of `share`.

        `loads`: it loads input data, and its `name`, `nvtx` ranges or `frames` tell so.
        """
        core = share.core if share is not None else self._core()
        thread = Thread(self.clock, process, name, process.pid + 3 * len(process.threads), core)
        thread.shares_core = share is not None
        thread.loads, thread.frames = loads, frames
        thread.latency, thread.returning = self.latency, self.returning
        if share is not None:
            share.shares_core = True
        process.threads.append(thread)
        self.clock.at(start, lambda: thread.begin(body(thread)))
        return thread

    def _core(self) -> Core:
        self._cores += 1
        return Core(self.clock, self._cores)

    def mutex(self) -> Mutex:
        return Mutex()

    def channel(self) -> Channel:
        return Channel()

    def collective(self, members: int) -> Collective:
        return Collective(members)

    def run(self) -> Simulation:
        """Let everything happen."""
        self.clock.run()
        return self

    def write(
        self,
        path: str | os.PathLike[str],
        capture: Capture | None = None,
        *,
        shuffle_seed: int | None = None,
        lazy: bool = True,
    ) -> Path:
        """Write the trace that this capture would have given; with `lazy=False` it has every table, most empty."""
        return record(self, capture or self.capture, lazy=lazy).write(path, shuffle_seed=shuffle_seed)

    def write_each(
        self, folder: Path, began: Sequence[int], capture: Capture | None = None, *, clock_errors: Sequence[int] = ()
    ) -> list[Path]:
        """One trace a process, each with a session of its own, as a profiler under each rank makes them.

        Session k began `began[k]` ns before this simulation, and all its times count from there. Its file says so in
        UTC, but for `clock_errors[k]` ns: clocks of several machines never agree.
        """
        paths = []
        for number, process in enumerate(self.processes):
            error = clock_errors[number] if clock_errors else 0
            trace = record(self, capture or self.capture, processes=[process]).later(began[number])
            trace.session_start(ZERO_UTC - began[number] + error)
            paths.append(trace.write(folder / f"rank{number}.sqlite"))
        return paths

    def truth(self, capture: Capture | None = None, *, same_gpu: bool = False) -> dict[DeviceKey, DeviceTruth]:
        """The true ledger of every device that shows work, by the (pid, device number) pairs that mean it.

        From schema 3.17 a trace tells which processes share a GPU; before, each process's view is a device of its
        own unless `same_gpu` says otherwise.
        """
        chosen = capture or self.capture
        found = {}
        for gpu in self.gpus:
            rows = rows_of(gpu, chosen)
            views = [frozenset([(context.process.pid, context.ordinal)]) for context in gpu.contexts]
            if chosen.version >= (3, 17) or same_gpu:
                views = [frozenset(pair for view in views for pair in view)]
            for key in views:
                seen = [row for row in rows if _owner(row.op.stream.context) in key]
                used = frozenset(_owner(row.op.stream.context) for row in seen)
                if (truth := device_truth(used, gpu, seen, chosen)) is not None:
                    found[used] = truth
        return found


def _owner(context: Context) -> tuple[int, int]:
    return context.process.pid, context.ordinal


def forbidden(truth: DeviceTruth, tolerated: frozenset[str] = frozenset()) -> frozenset[str]:
    """Causes that must not be blamed for a single nanosecond: all that are not in the truth, thresholds apart."""
    return frozenset(CAUSES) - {cause for cause, ns in truth.ledger.items() if ns} - TINY - tolerated
