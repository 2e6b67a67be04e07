"""A waker ends most waits of its kind; who is there at the end of some of them, as at any moment, ended none.

```
              0        0.2 ms                        2.2 ms          3 ms
T (MAIN)      [kernel] [------- sem_wait ----------)[launch]         again, 119 times
NEIGHBOUR                      [1.9 ........... 2.18)                at some of them
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.wakeups.waits import LEAST
from tests.builder import MAIN, TraceBuilder
from tests.causes.example import NEIGHBOUR, STRANGER
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from tests.builder import ThreadId

MS, US = 1_000_000, 1_000
STEP, BEGAN, ENDED, COUNT = 3 * MS, 200 * US, 2_200 * US, 119
SOME, NEARLY_ALL = range(0, 12 * 9, 9), [each for each in range(COUNT) if each % 13]


def waiting(call: str = "sem_wait", count: int = COUNT) -> TraceBuilder:
    """T waits again and again, off its CPU but for the ends of the waits."""
    trace = TraceBuilder(schema="3.24.8").process().process(STRANGER[0])
    for number in range(count):
        at = number * STEP
        trace.kernel(at + 10 * US, at + 110 * US, launch=(at + US, at + 5 * US)).osrt(call, at + BEGAN, at + ENDED)
        trace.sched(at + BEGAN + 5 * US, False).sched(at + ENDED - 5 * US, True)
    at = count * STEP
    return trace.kernel(at + 10 * US, at + 110 * US, launch=(at + US, at + 5 * US))


def runs(trace: TraceBuilder, thread: ThreadId, numbers: Collection[int], cpu: int = 3) -> TraceBuilder:
    """The thread runs until the end of the waits with these numbers, and in the middle of the others."""
    for number in range(COUNT):
        at = number * STEP + (1_900 * US if number in numbers else MS)
        trace.sched(at, True, thread=thread, cpu=cpu).sched(at + 280 * US, False, thread=thread, cpu=cpu)
    return trace


def calls(trace: TraceBuilder, thread: ThreadId, numbers: Collection[int]) -> TraceBuilder:
    """The thread signals just before the end of the waits with these numbers."""
    for number in numbers:
        at = number * STEP + ENDED - 40 * US
        trace.osrt("pthread_cond_signal", at, at + US, thread=thread)
    return trace


def found(trace: TraceBuilder, path: Path) -> list[ThreadId]:
    """Who ended the waits, of those for which that is told."""
    device = only_device(trace, path)
    assert sum(device.root_ledger.values()) == device.idle_ns
    hops = [gap.root.hops[0].thread for gap in device.gaps if gap.root is not None and gap.root.hops]
    return [(thread.pid, thread.tid) for thread in hops]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("numbers", "count"), [(SOME, 0), (NEARLY_ALL, 109)], ids=["some", "nearly all"])
def test_the_only_thread_that_ran(numbers: Collection[int], count: int, tmp_path: Path) -> None:
    assert len(numbers) == (count or 12)
    assert found(runs(waiting(), NEIGHBOUR, numbers), tmp_path) == [NEIGHBOUR] * count


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize(("numbers", "count"), [(SOME, 0), (NEARLY_ALL, 109)], ids=["some", "nearly all"])
@pytest.mark.parametrize("add", [calls, lambda *given: runs(calls(*given), NEIGHBOUR, given[2])], ids=["", "ran too"])
def test_lone_wake_calls(
    add: Callable[[TraceBuilder, ThreadId, Collection[int]], TraceBuilder],
    numbers: Collection[int],
    count: int,
    tmp_path: Path,
) -> None:
    trace = add(waiting("pthread_cond_wait"), NEIGHBOUR, numbers)
    assert found(trace, tmp_path) == [NEIGHBOUR] * count


@pytest.mark.slow
def test_calls_of_which_most_have_no_row(tmp_path: Path) -> None:
    """The thread that ran at the end of nearly all made a call that was recorded at some of them."""
    trace = runs(calls(waiting("pthread_cond_wait"), NEIGHBOUR, SOME), NEIGHBOUR, range(COUNT))
    assert found(trace, tmp_path) == [NEIGHBOUR] * COUNT


@pytest.mark.slow
def test_a_pool_ends_them_together(tmp_path: Path) -> None:
    pool = [(MAIN[0], 5000 + number) for number in range(4)]
    trace = waiting()
    for at, thread in enumerate(pool):
        runs(trace, thread, range(at, COUNT, 4), cpu=3 + at)
    assert found(trace, tmp_path) == [pool[number % 4] for number in range(COUNT)]


@pytest.mark.slow
def test_a_pool_that_ends_few_of_them(tmp_path: Path) -> None:
    trace = waiting()
    for at in range(4):
        runs(trace, (MAIN[0], 5000 + at), range(at, COUNT, 12), cpu=3 + at)
    assert found(trace, tmp_path) == []


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("count", "told"), [(LEAST - 1, 2), (LEAST, 0)])
def test_few_waits_have_no_rate(count: int, told: int, tmp_path: Path) -> None:
    trace = waiting(count=count)
    for number in (2, 5):
        at = number * STEP + 1_900 * US
        trace.sched(at, True, thread=NEIGHBOUR, cpu=3).sched(at + 280 * US, False, thread=NEIGHBOUR, cpu=3)
    assert found(trace, tmp_path) == [NEIGHBOUR] * told


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("numbers", "count"), [(range(COUNT), COUNT), (range(90), 0)], ids=["always", "often"])
def test_a_thread_of_another_process(numbers: Collection[int], count: int, tmp_path: Path) -> None:
    trace = runs(runs(waiting(), NEIGHBOUR, SOME), STRANGER, numbers, cpu=4)
    assert found(trace, tmp_path) == [STRANGER] * count
