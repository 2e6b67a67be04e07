"""What is in the gallery: one record a report. The sentences about it are in docs/gallery.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scripts._gallery import jobs
from tests.simulator import CUDA_ONLY

if TYPE_CHECKING:
    from nsysdiag.bottlenecks import BottleneckId

Write = Callable[[Path], object]

SIMULATED = "a simulated job"
REAL_HOST = "a real host, captured with nsys 2023.4.4, with a computed GPU"


class Entry(NamedTuple):
    """A report: `name` is that of its page, `bottleneck` what its headline names, if it has one. `traces` writes
    them into a folder and names them. `command` has the options behind the traces, `end` is how the line begins
    at which the first screen is over."""

    name: str
    bottleneck: BottleneckId | None
    origin: str
    traces: Callable[[Path], list[str]]
    command: str = "analyze"
    options: tuple[str, ...] = ()
    end: str = "Findings"

    def arguments(self, traces: list[str]) -> list[str]:
        """The command line, without the program and where its results go."""
        return [self.command, *traces, *self.options]


def one(write: Write, name: str = "train.sqlite") -> Callable[[Path], list[str]]:
    """One trace."""
    return several({name: write})


def several(writes: dict[str, Write]) -> Callable[[Path], list[str]]:
    """Traces by name."""

    def traces(folder: Path) -> list[str]:
        for name, write in writes.items():
            write(folder / name)
        return list(writes)

    return traces


def of_ranks(folder: Path) -> list[str]:
    """A trace a rank."""
    return [path.name for path in jobs.ranks(folder)]


LOADERS = {"one_loader.sqlite": jobs.one_loader.write, "five_loaders.sqlite": jobs.five_loaders.write}
COPIES = {
    "pageable.sqlite": partial(jobs.real_host, "pageable_copies"),
    "pinned.sqlite": partial(jobs.real_host, "pinned_copies"),
}

ENTRIES = (
    Entry("late-loader", "input", f"two ranks on {REAL_HOST}", one(jobs.demo, "demo.sqlite")),
    Entry("slow-reads", "input", SIMULATED, one(jobs.one_loader.write)),
    Entry("interpreter-lock", "host", REAL_HOST, one(partial(jobs.real_host, "gil_contention"))),
    Entry("preempted", "host", REAL_HOST, one(partial(jobs.real_host, "preempted"))),
    Entry("synchronized", "sync", SIMULATED, one(jobs.synchronized)),
    Entry("small-kernels", "launch", REAL_HOST, one(partial(jobs.real_host, "launch_bound"))),
    Entry("pageable-copies", "copies", REAL_HOST, one(partial(jobs.real_host, "pageable_copies"), "pageable.sqlite")),
    Entry("exchange", "communication", SIMULATED, one(partial(jobs.program, "slow_exchange_of_equal_ranks"))),
    Entry("allocations", "memory", REAL_HOST, one(partial(jobs.real_host, "allocator_churn"))),
    Entry(
        "page-faults", "memory", SIMULATED, one(partial(jobs.program, "pages_fault_inside_kernels"), "solver.sqlite")
    ),
    Entry("one-block", "parallelism", SIMULATED, one(partial(jobs.program, "one_thread_for_long"), "solver.sqlite")),
    Entry("busy", "kernels", REAL_HOST, one(partial(jobs.real_host, "healthy"))),
    Entry("counters", "kernels", SIMULATED, one(partial(jobs.fixture, "sim_gpu_metrics"))),
    Entry("start", "startup", SIMULATED, one(partial(jobs.program, "short_loop_after_a_long_start"), "solver.sqlite")),
    Entry("shared-gpu", "other_process", SIMULATED, one(jobs.shared_gpu)),
    Entry("too-few-flags", "unknown", SIMULATED, one(partial(jobs.one_loader.write, capture=CUDA_ONLY))),
    Entry(
        "more-loaders-predicted",
        None,
        SIMULATED,
        one(jobs.one_loader.write),
        "whatif",
        ("--without", "data_loading"),
        "Idle time",
    ),
    Entry("more-loaders", None, f"{SIMULATED}, twice", several(LOADERS), "compare", end="Bottleneck"),
    Entry("pinned-copies", None, f"{REAL_HOST}, twice", several(COPIES), "compare", end="Bottleneck"),
    Entry("eight-ranks", None, SIMULATED, of_ranks, "ranks", end="Ranks in the judged time"),
)
