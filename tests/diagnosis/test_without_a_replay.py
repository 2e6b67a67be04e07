"""What findings save at most where nothing is replayed, against simulated programs that were fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag import Settings, analyze
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.diagnosis.facts import Saves
from nsysdiag.diagnosis.one_problem import Judged, most_saved, touched_share
from nsysdiag.events.calls import CallRows
from nsysdiag.kernels.limits import InOrder
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.diagnosis.test_savings import finding
from tests.replay.pairs import chance, chance_threads
from tests.replay.pairs.pair import Pair, loop, simulated, truth, varied
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

SETTINGS = Settings(timeline=False, replay=False)
CAUSES = {
    "blocking copy": ("blocking_copy", "exposed_copy"),
    "synchronize": ("sync",),
    "read": ("io_wait",),
    "sleep": ("sleep",),
    "host": ("host_compute",),
    "free": ("memory_allocation",),
}
"""The causes of findings whose fix is that of a pair."""
SEEDS = ((chance_threads.pairs, (0, 12, 13, 15, 27, 29)), (chance.pairs, (10, 17, 21, 27)))
"""Programs of which some fix saved more than kernels, or than the copies themselves, seemed to leave."""


def promised(pairs: Sequence[Pair], folder: Path) -> Iterator[tuple[Pair, Saves]]:
    """The fixes of one program, and what the findings promise that these fix."""
    first = pairs[0]
    trace = simulated(first.before, first.gpus, first.capture)[0].write(
        folder / f"{first.name}.sqlite".replace(":", "")
    )
    findings = analyze(trace, SETTINGS).findings
    for pair in pairs:
        causes = CAUSES.get(pair.name.split(": ")[1], ())
        yield from ((pair, each.saves) for each in findings if each.saves and each.cause in causes)


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize(("pairs", "seeds"), SEEDS, ids=["threads", "one thread"])
def test_no_fix_saves_more(pairs: Callable[[int], Iterable[Pair]], seeds: Sequence[int], tmp_path: Path) -> None:
    found = [
        (pair.name, truth(pair).saved, saves.high_ns / saves.of_ns)
        for seed in seeds
        for pair, saves in promised([*pairs(seed)], tmp_path)
    ]
    assert len(found) >= 4
    assert [each for each in found if each[1] > each[2] + 0.01] == []


def allocating(sim: Simulation, marks: Marks, *, ns: int) -> None:
    """Memory is allocated in each step, in which the host computes for most of the time."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(3 * MS, number), "assemble")
        yield from t.api("cudaMalloc", ns, "memory_allocation")
        yield from t.launch("solve", 500 * US)

    loop(sim, marks, step, process=process)


@pytest.mark.parametrize("ns", [1 * MS, 4 * MS])
def test_calls_of_one_thread_save_their_time_and_that_of_kernels(ns: int, tmp_path: Path) -> None:
    """Kernels leave 90% and more, but the host computes for most of that."""
    trace = simulated(partial(allocating, ns=ns), 1)[0].write(tmp_path / "trace.sqlite")
    report = analyze(trace, SETTINGS)
    (found,) = [each for each in report.findings if each.cause == "memory_allocation"]
    assert found.saves is not None
    assert ns <= found.saves.high_ns < ns + 600 * US
    assert found.saves.of_ns > ns + 2500 * US


def copying(sim: Simulation, marks: Marks) -> None:
    """Each step computes on the host, and reads a result back behind a kernel, and checks it."""

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(5 * MS, number), "assemble")
        yield from t.launch("solve", 500 * US)
        yield from t.blocking_copy("DtoH", 8_000_000, 1 * MS)
        yield from t.compute(varied(3 * MS, number), "check")

    loop(sim, marks, step, process=solver(sim))


def test_copies_save_no_more_than_their_calls(tmp_path: Path) -> None:
    """The call holds the thread for the kernel and the copy, of a step of 9.5 ms."""
    report = analyze(simulated(copying, 1)[0].write(tmp_path / "trace.sqlite"), SETTINGS)
    (found,) = [each for each in report.findings if each.cause == "exposed_copy"]
    assert found.saves is not None
    assert 1_000 * US <= found.saves.high_ns < 1_700 * US
    assert found.saves.of_ns > 9 * MS


ALLOCATION = "memory_allocation"


class TestMostSaved:
    def test_calls_of_one_thread(self) -> None:
        device = Judged(1_000, 1_000, 200, busy_ns=250, alone=True)
        assert most_saved(finding(lost=100, cause=ALLOCATION), {"gpu0": device})[0] == 0.35

    def test_what_other_threads_may_do_too(self) -> None:
        device = Judged(1_000, 1_000, 200, busy_ns=250, alone=True)
        assert most_saved(finding(lost=100, cause="io_wait"), {"gpu0": device})[0] == 0.8

    def test_a_wait_may_be_for_kernels_without_rows(self) -> None:
        device = Judged(1_000, 1_000, 200, busy_ns=250, alone=True)
        assert most_saved(finding(lost=100, cause="sync"), {"gpu0": device})[0] == 0.8

    def test_several_threads_or_devices(self) -> None:
        device = Judged(1_000, 1_000, 200, busy_ns=250)
        assert most_saved(finding(lost=100, cause=ALLOCATION), {"gpu0": device})[0] == 0.8
        alone = Judged(1_000, 1_000, 100, busy_ns=250, alone=True)
        assert most_saved(finding(lost=100, cause=ALLOCATION), {"gpu0": alone, "gpu1": device})[0] == 0.8

    def test_calls_of_mpi_may_end_sooner(self) -> None:
        device = Judged(1_000, 1_000, 200, busy_ns=250, met_ns=300, alone=True)
        assert most_saved(finding(lost=100, cause=ALLOCATION), {"gpu0": device})[0] == 0.65

    @pytest.mark.parametrize(
        ("cause", "most"),
        [("exposed_copy", 0.45), ("paging", 0.29), ("sync", 1.0)],
        ids=["copies and their calls", "pages", "what is no copy"],
    )
    def test_what_a_fix_can_touch(self, cause: str, most: float) -> None:
        """Copies and the calls that copy take 300, pages move for 120 and the GPU idles for 20 between them. In MPI
        150 may be waits."""
        times = Judged(1_000, 1_000, 200, busy_ns=700, met_ns=150, touched={"exposed_copy": 300, "paging": 140})
        assert touched_share(finding(lost=100, cause=cause), {"gpu0": times})[0] == most

    def test_copies_of_several_devices(self) -> None:
        times = Judged(1_000, 1_000, 100, touched={"exposed_copy": 300}), Judged(1_000, 1_000, 100)
        found = finding(lost=100, cause="exposed_copy")
        assert touched_share(found, dict(zip(("gpu0", "gpu1"), times, strict=True)))[0] == 0.3

    def test_kernels_of_several_streams_may_overlap(self) -> None:
        device = Judged(1_000, 1_000, 500, in_order_ns=300)
        assert most_saved(finding(lost=100, cause=ALLOCATION), {"gpu0": device})[0] == 0.7


class TestInOrder:
    """Kernels of 40, 30 and 20, of which the first two start together."""

    def found(self, streams: list[int], threads: list[int], parts: Intervals | None = None, times: int = 1) -> InOrder:
        none = np.zeros(3 * times, dtype=np.bool_)
        start, length = np.array([0, 0, 50] * times), np.array([40, 30, 20] * times)
        operations = SimpleNamespace(
            migration=none, category=np.zeros(3 * times, np.int64), start=start, end=start + length
        )
        device = SimpleNamespace(
            operations=operations,
            running=~none,
            communication=none,
            launch=np.arange(3 * times),
            stream_code=np.array(streams),
        )
        calls = CallRows(*[np.array(threads)] * 6)
        everything = Intervals(np.array([0]), np.array([100]))
        return InOrder.of(device, calls, parts or everything)  # type: ignore[arg-type]

    def test_one_stream_is_all(self) -> None:
        assert self.found([1, 1, 1], [7, 7, 7]) == InOrder(None, one_thread=True)

    def test_the_stream_with_most(self) -> None:
        assert self.found([1, 2, 2], [7, 7, 7]) == InOrder(50, one_thread=True)

    def test_any_thread_may_take_the_steps(self) -> None:
        assert self.found([1, 2, 2], [7, 8, 8]) == InOrder(40, one_thread=False)

    def test_in_parts(self) -> None:
        parts = Intervals(np.array([10, 60]), np.array([20, 65]))
        assert self.found([1, 2, 2], [7, 7, 7], parts) == InOrder(15, one_thread=True)

    def test_many_threads_of_which_each_launches_little(self) -> None:
        assert self.found([*range(15)], [*range(15)], times=5) == InOrder(40, one_thread=False)

    @pytest.mark.parametrize("cause", ["launch_latency", "dispatch", "intra_graph"])
    def test_time_before_each_operation_of_one_stream(self, cause: str) -> None:
        """Nothing else waits for it, so its own time is all; copies may hide some more of it."""
        device = Judged(1_000, 1_000, 200, busy_ns=250, alone=True)

        def most(judged: Judged) -> float:
            return most_saved(finding(lost=100, cause=cause), {"gpu0": judged})[0]

        assert most(device) == 0.1
        assert most(replace(device, in_order_ns=200)) == 0.1
        assert most(replace(device, beside_ns=50)) == 0.15
        assert most(replace(device, in_order_ns=150)) > 0.3
        assert most(replace(device, alone=False)) == 0.8
