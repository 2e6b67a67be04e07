"""Speed, without a clock on the wall: CPU time against that of reading the columns, growth, and executed lines.

`scripts/bench` measures the real figures; here stand bounds with head room, for machines that are slow or busy.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nsysdiag
from nsysdiag import Settings, analyze
from nsysdiag.arrays.background import Background, Deferred
from tests.peak_memory import peak_bytes_of
from tests.reading import read_columns, watched_analysis
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Node
from tests.simulator.engine import US
from tests.simulator.large import write_large

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from tests.simulator.actions import Mutex, Thread
    from tests.simulator.host import Body

pytestmark = pytest.mark.slow

PACKAGE = Path(nsysdiag.__file__).parent
WITHOUT_ROW_LOOPS = tuple(f"{part}/" for part in PACKAGE.iterdir() if part.is_dir() and part.name != "trace")
Lines = Counter[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("speed")


def cpu_seconds(work: Callable[[], object], runs: int = 3) -> float:
    """The least of some runs."""
    times = []
    for _ in range(runs):
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.thorough
def test_analysis_takes_a_small_multiple_of_reading_its_columns(folder: Path) -> None:
    trace = write_large(folder / "ratio.sqlite", 150_000)
    requests = watched_analysis(trace)
    assert {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "SCHED_EVENTS"} <= set(requests)
    reading = cpu_seconds(lambda: read_columns(trace, requests))
    # 5.2 to 6.0 on three machines, idle and busy.
    assert cpu_seconds(lambda: analyze(trace)) < 7.5 * reading


def peak_bytes(trace: Path, out: Path) -> int:
    return peak_bytes_of(
        [sys.executable, "-P", "-m", "nsysdiag", "analyze", str(trace), "-q", "--force", "-o", str(out)]
    )


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system does not tell the memory of a process")
def test_memory_is_little_more_than_the_file(folder: Path) -> None:
    empty = peak_bytes(write_large(folder / "empty.sqlite", 50), folder / "out.json")
    trace = write_large(folder / "memory.sqlite", 150_000)
    # 1.92 with 20 GB free, of which a part is kept once it was used, else 1.75. Of it 0.1 when threads ran, which the
    # replay looks at behind the devices. The least of some runs: how two threads take turns moves the peak by 0.03.
    peak = min(peak_bytes(trace, folder / "out.json") for _run in range(3))
    assert peak - empty < 2.05 * trace.stat().st_size


@pytest.mark.thorough
def test_time_grows_about_as_the_trace_does(folder: Path) -> None:
    small = write_large(folder / "small.sqlite", 50_000)
    large = write_large(folder / "large.sqlite", 200_000)
    analyze(small)  # what is imported late
    assert cpu_seconds(lambda: analyze(large)) < 6 * cpu_seconds(lambda: analyze(small))


GAPS = 20
"""The longest gaps are described one by one: a few, of which any number may lead to another thread."""


def executed_lines(trace: Path) -> Lines:
    """The lines of code run in the folders of the package but `trace`, by function; a turn of a comprehension is one
    too."""
    lines: Lines = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> Callable[..., object]:
        if event == "line":
            lines[f"{frame.f_code.co_filename.removeprefix(f'{PACKAGE}/')} {frame.f_code.co_name}"] += 1
        return count

    def enter(frame: FrameType, _event: str, _argument: object) -> Callable[..., object] | None:
        return count if frame.f_code.co_filename.startswith(WITHOUT_ROW_LOOPS) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        # All in this thread: which lines it runs would depend on who comes first.
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(
                Background, "begin", lambda _, work, *args, **named: Deferred(partial(work, *args, **named))
            )
            analyze(trace, Settings(gaps=GAPS))
    finally:
        sys.settrace(before)
    assert {"arrays", "events", "ledger", "wakeups"} <= {name.partition("/")[0] for name in lines}
    return lines


def assert_about_the_same(small: Lines, large: Lines, listed: int = 1_000) -> None:
    """`listed` is how many lines a function may run for the rows of a report, whose number has a limit."""
    grown = {name: (small[name], count) for name, count in large.items() if count > 1.5 * small[name] + listed}
    assert grown == {}
    assert large.total() < 1.25 * small.total()


@pytest.mark.thorough
def test_no_python_loops_over_the_rows_of_a_large_trace(folder: Path) -> None:
    small = executed_lines(write_large(folder / "rows.sqlite", 20_000))
    large = executed_lines(write_large(folder / "many_rows.sqlite", 80_000))
    assert_about_the_same(small, large, 2_000)  # 200 iterations with means of metrics take 1,900


def everything(turns: int) -> Simulation:
    """Two threads that use all kinds of rows, turn after turn, so that every rule has much to do."""
    simulation = Simulation(gpus=2)
    process = simulation.process()
    mutex: Mutex = simulation.mutex()
    side, other_gpu = process.stream(0), process.stream(1)
    nodes = [Node("first", 30 * US), Node("second", 20 * US, 4 * US)]

    def rival(t: Thread) -> Body:
        for _ in range(turns):
            yield from t.lock(mutex)
            yield from t.compute(200 * US)
            yield from t.unlock(mutex)
            yield from t.compute(900 * US)

    def main(t: Thread) -> Body:
        for turn in range(turns):
            t.push(f"turn {turn % 5}")
            yield from t.launch("gemm", 60 * US, twin=True)
            yield from t.lock(mutex)
            yield from t.library("cublasGemmEx", 20 * US, [t.launch("gemm", 40 * US)], 3 * US)
            yield from t.unlock(mutex)
            event = t.event()
            yield from t.record(event, process.null)
            yield from t.wait_event(side, event)
            yield from t.launch("dependent", 50 * US, side)
            yield from t.launch("elsewhere", 80 * US, other_gpu)
            yield from t.launch_graph(nodes)
            yield from t.copy("HtoD", 1 << 20, 30 * US)
            yield from t.fill(1 << 20, 8 * US)
            yield from t.blocking_copy("DtoH", 4, 2 * US, staging=12 * US)
            yield from t.read_file(90 * US)
            yield from t.launch("late", 20 * US)
            yield from t.api("cudaMalloc", 60 * US, "memory_allocation")
            yield from t.launch("later", 20 * US)
            yield from t.sleep(50 * US)
            yield from t.compute(70 * US, "prepare")
            yield from t.launch("last", 20 * US, side)
            # The replay holds 4,096 operations of short steps: the small trace has more, as the large one.
            for _ in range(12):
                yield from t.launch("small", 3 * US)
            yield from t.spin_on(event)
            yield from t.synchronize()
            t.pop()

    simulation.thread(process, rival, name="rival")
    simulation.thread(process, main)
    return simulation.run()


@pytest.mark.thorough
def test_no_python_loops_over_rows_of_any_kind(folder: Path) -> None:
    small = executed_lines(everything(200).write(folder / "kinds.sqlite", EVERYTHING))
    large = executed_lines(everything(800).write(folder / "many_kinds.sqlite", EVERYTHING))
    assert_about_the_same(small, large, 2_000)  # 600 turns more have 1,300 call chains more; 10,000 at most are read


def test_a_loop_over_rows_would_be_seen() -> None:
    """Both kinds: one that grows among many lines, and the sum of many small ones."""
    with pytest.raises(AssertionError):
        assert_about_the_same(Counter(steady=50_000, loop=500), Counter(steady=50_000, loop=2_000))
    with pytest.raises(AssertionError):
        assert_about_the_same(Counter(range(300)), Counter(list(range(300)) * 2))
