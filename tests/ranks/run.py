"""A run of several ranks in a few lines: a step of each rank is compute, then an AllReduce that all leave together.

```
         0        4 ms               8 ms       10 ms
rank 0   [compute)[AllReduce ........)          [compute) ...      arrives at 4
rank 1   [compute) host code [AllRed.)          [compute) ...      arrives at 7: late by 3
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.config.settings import Settings
from nsysdiag.ranks.pipeline import analyze_ranks
from tests.builder import MAIN, TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.ranks.facts import RankComparison
    from tests.builder import ThreadId

US, MS = 1_000, 1_000_000
PERIOD, COMPUTE, TRANSFER = 10 * MS, 4 * MS, 1 * MS
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
UTC = 1_700_000_000_000_000_000
Arrivals = list[list[int]]


def add_rank(
    trace: TraceBuilder,
    arrivals: Arrivals,
    rank: int,
    *,
    device: int = 0,
    thread: ThreadId = MAIN,
    shift: Sequence[int] | int = 0,
    name: str = ALL_REDUCE,
    stream: int = 9,
    start: int = PERIOD,
) -> TraceBuilder:
    """The steps of one rank. `arrivals[step][rank]` is when it comes to the AllReduce of a step, counted from the start
    of the step; `shift` moves all of its times, or those of each step."""
    trace.sched(1, True, thread=thread, cpu=thread[1] % 64)
    for step, arrive in enumerate(arrivals):
        base = start + step * PERIOD + (shift if isinstance(shift, int) else shift[step])
        begin, end = base + arrive[rank], base + max(arrive) + TRANSFER
        where = {"device": device, "thread": thread}
        trace.kernel(base, base + COMPUTE, launch=(base - 20 * US, base - 15 * US), **where)
        launch = (begin - 10 * US, begin - 5 * US)
        trace.kernel(begin, end, name=name, stream=stream, launch=launch, **where)
    return trace


def one_file(arrivals: Arrivals, **named: int) -> TraceBuilder:
    """All ranks in one trace, each a process with a device of its own."""
    trace = TraceBuilder()
    for rank in range(len(arrivals[0])):
        add_rank(trace, arrivals, rank, device=rank, thread=(100 + rank, 100 + rank), **named)
    return trace


def files(
    folder: Path, arrivals: Arrivals, clocks: Sequence[Sequence[int] | int], utc: Sequence[int] | None = None
) -> list[Path]:
    """A trace a rank, `rank0.sqlite` on; the clock of each is ahead by one of `clocks`, or by one for each step. `utc`
    is what each file says of its time 0, from UTC on."""
    paths = []
    for rank, clock in enumerate(clocks):
        trace = add_rank(TraceBuilder(), arrivals, rank, shift=clock, thread=(100 + rank, 100 + rank))
        if utc is not None:
            trace.row("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs": UTC + utc[rank]})
        paths.append(trace.write(folder / f"rank{rank}.sqlite"))
    return paths


def compared(folder: Path, trace: TraceBuilder) -> RankComparison:
    """The ranks of one trace."""
    return analyze_ranks([trace.write(folder / "run.sqlite")], Settings()).comparison


def compared_files(*paths: Path) -> RankComparison:
    """The ranks of several traces."""
    return analyze_ranks(paths, Settings()).comparison
