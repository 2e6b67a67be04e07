"""What the simulator says about where waits lead: by hand where that is possible, and by its own rules and rows."""

from __future__ import annotations

import random
import sqlite3
from bisect import bisect_left
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.builder import global_tid
from tests.levels import some
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.evidence import cause_of, records_os_call
from tests.simulator.interpreter import Gil
from tests.simulator.roots import DATA_LOADING, MOST_HOPS, WAITS, shown
from tests.simulator.scenarios import SCENARIOS, scenario
from tests.simulator.scenarios.arbitrary import arbitrary
from tests.simulator.scenarios.pipelines import pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator import Capture
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body, HostThread, Waited
    from tests.simulator.truth import DeviceTruth

pytestmark = pytest.mark.slow

US = 1_000
WAITING = sorted(name for name, found in SCENARIOS.items() if found.latency is not None)
WAKE_CALL_TO_CPU = (13 * US, 100 * US)
CAPTURES = [
    EVERYTHING,
    EVERYTHING.but(osrt=False),
    EVERYTHING.but(sched=False),
    EVERYTHING.but(samples=False),
    EVERYTHING.but(nvtx=False),
    EVERYTHING.but(api=False),
    EVERYTHING.but(graphs="graph"),
]


def only(simulation: Simulation, capture: Capture = EVERYTHING) -> DeviceTruth:
    (truth,) = simulation.truth(capture).values()
    return truth


def chain_of_two() -> Simulation:
    """
    B     [read 0..54                ]post..|
    A     [sem_wait 0..59.5             woken 55.5][computes 20]post..|81
    main  [launch a][sem_wait 5..85                           woken 81    ][launch b 85..90]
    gpu       [a 7..17].....................................................................[b 92..102]
    """
    simulation = Simulation()
    process, pieces, batches = simulation.process(), simulation.channel(), simulation.channel()

    def read(t: Thread) -> Body:
        yield from t.read_file(50 * US)
        yield from t.put(pieces, "sem_post")

    def assemble(t: Thread) -> Body:
        yield from t.get(pieces, "sem_wait")
        yield from t.compute(20 * US)
        yield from t.put(batches, "sem_post")

    def main(t: Thread) -> Body:
        yield from t.launch("a", 10 * US)
        yield from t.get(batches, "sem_wait")
        yield from t.launch("b", 10 * US)

    for body in (main, assemble, read):
        simulation.thread(process, body)
    return simulation.run()


def preempted_loader() -> Simulation:
    """
    worker  [computes 0..4000][out of turn ..8000][computes ..10000][write: wakes at 10001.5]
    main    [launch a][read 5..10005.5                                                      ][launch b 10005.5..]
    gpu         [a 7..17]...........................................................................[b 10012.5..]
    """
    simulation = Simulation()
    process, other, batches = simulation.process(), simulation.process(gpus=[]), simulation.channel()

    def load(t: Thread) -> Body:
        yield from t.compute(6_000 * US)
        yield from t.put(batches)

    def main(t: Thread) -> Body:
        yield from t.launch("a", 10 * US)
        yield from t.get(batches)
        yield from t.launch("b", 10 * US)

    worker = simulation.thread(other, load, name="pt_data_worker", loads="name")
    simulation.thread(other, lambda t: t.compute(20_000 * US), share=worker)
    simulation.thread(process, main)
    return simulation.run()


class TestByHand:
    def test_chain_of_two(self) -> None:
        """In us: B reads 17..54 and posts until 55.5; A wakes up until 59.5, computes and posts until 81."""
        truth = only(chain_of_two())
        launch = {"launch_call": 5_000, "launch_latency": 2_000}
        assert truth.ledger == {"lock_wait": 68_000} | launch
        assert truth.root_ledger == {"io_wait": 37_000, "host_compute": 23_000, "lock_wait": 8_000} | launch
        assert truth.root_labels == {}

    def test_without_scheduling_nothing_tells_who_posted(self) -> None:
        truth = only(chain_of_two(), EVERYTHING.but(sched=False))
        assert truth.root_ledger == truth.ledger
        assert truth.claimable["io_wait"] == 37_000

    def test_without_os_calls_the_wait_is_blocked(self) -> None:
        truth = only(chain_of_two(), EVERYTHING.but(osrt=False))
        assert truth.root_ledger == {"blocked": 68_000, "launch_call": 5_000, "launch_latency": 2_000}

    def test_preempted_loader(self) -> None:
        """In us: the loader computes 17..4000 and 8000..10000, is out of turn between, and writes for 1.5."""
        truth = only(preempted_loader())
        launch = {"launch_call": 5_000, "launch_latency": 2_000}
        assert truth.ledger == {"io_wait": 9_988_500} | launch
        assert truth.root_ledger == {"data_loading": 9_984_500, "io_wait": 4_000} | launch
        did = {"host_compute": 5_983_000, "off_cpu": 4_000_000, "io_wait": 1_500}
        assert truth.root_labels == {"data_loading": did}

    def test_a_write_tells_who_wrote_even_without_scheduling(self) -> None:
        """What the loader did is not known then, but for samples: they do not tell a thread out of turn."""
        truth = only(preempted_loader(), EVERYTHING.but(sched=False))
        assert truth.root_ledger["data_loading"] == 9_984_500
        assert truth.root_labels["data_loading"]["uncovered"] == 4_000_000

    def test_interpreter_lock(self) -> None:
        """Asked for at 5005.3 µs at the latest, seen at 5100, handed over 0.5 later: no root but the lock."""
        simulation, gil = Simulation(), Gil()
        process = simulation.process()

        def busy(t: Thread) -> Body:
            yield from gil.acquire(t)
            yield from gil.compute(t, 8_000 * US)
            yield from gil.release(t)

        def main(t: Thread) -> Body:
            yield from t.launch("a", 10 * US)
            yield from gil.acquire(t)
            yield from t.launch("b", 10 * US)
            yield from gil.release(t)

        simulation.thread(process, busy)
        thread = simulation.thread(process, main)
        truth = only(simulation.run())
        rows = [(call.start, call.end) for call in thread.calls if call.name == "pthread_cond_timedwait"]
        assert rows == [(5_000, 5_009_300), (5_009_300, 5_104_500)]
        assert truth.ledger["lock_wait"] == 5_104_500 - 17_000
        assert truth.root_ledger == truth.ledger
        assert truth.root_labels == {"lock_wait": {"GIL": 5_104_500 - 17_000}}


@pytest.fixture(scope="module")
def simulations() -> list[tuple[str, Simulation]]:
    programs = [(name, scenario(name)) for name in sorted(SCENARIOS)]
    programs += [(f"arbitrary {seed}", arbitrary(seed)) for seed in range(8)]
    return programs + [(f"pipeline {seed}", pipeline(seed)) for seed in range(24)]


@pytest.mark.thorough
@pytest.mark.parametrize("capture", CAPTURES)
def test_roots_cover_the_gaps_as_the_ledger_does(simulations: list[tuple[str, Simulation]], capture: Capture) -> None:
    for name, simulation in some(simulations, 4, CAPTURES.index(capture)):
        for truth in simulation.truth(capture).values():
            for gap in truth.gaps:
                roots = sorted(gap.roots, key=lambda root: root.start)
                assert (roots[0].start, roots[-1].end) == (gap.start, gap.end), name
                assert all(before.end == after.start for before, after in pairwise(roots)), name
            root_ledger, claimable = truth.root_ledger, truth.claimable
            assert sum(root_ledger.values()) == sum(truth.ledger.values()) == truth.idle, name
            for ledger in (root_ledger, truth.ledger):
                assert all(ns <= claimable[cause] for cause, ns in ledger.items()), name


def root_at(thread: HostThread, time: int, hops: int = 0) -> tuple[str, bool]:
    """The root of one nanosecond, hop by hop, and whether a loader is on the way; everything is seen."""
    spans = [span for span in thread.spans if span.start <= time < span.end]
    cause = cause_of(spans[0], None, EVERYTHING)
    waits = [waited for waited in thread.waits if waited.start <= time < waited.until and waited.by is not None]
    if not waits or cause not in WAITS or hops == MOST_HOPS or any(call.label for call in spans[0].stack):
        return cause, False
    other = waits[0].by
    assert other is not None
    if not any(span.start <= time < span.end for span in other.spans):
        return cause, False
    root, loads = root_at(other, time, hops + 1)
    return root, loads or bool(other.loads)


@pytest.mark.parametrize("name", WAITING)
def test_single_nanoseconds_have_the_root_found_hop_by_hop(name: str) -> None:
    simulation, chance = scenario(name), random.Random(name)
    (truth,) = simulation.truth().values()
    (main,) = {gpu.ops[0].call.owner for gpu in simulation.gpus if gpu.ops[0].call is not None}
    roots = [root for gap in truth.gaps for root in gap.roots if root.along & (WAITS | {"blocked"})]
    for root in chance.choices(roots, weights=[root.end - root.start for root in roots], k=150):
        cause, loads = root_at(main, chance.randrange(root.start, root.end))
        expected = (DATA_LOADING, cause) if loads else (cause, "")
        assert (root.cause, root.label.replace("GIL", "")) == expected


@pytest.mark.slow
def test_waits_that_cannot_be_seen_have_no_root_but_themselves(simulations: list[tuple[str, Simulation]]) -> None:
    """Without OS calls a wait is off the CPU, for nobody knows what."""
    for name, simulation in simulations:
        for truth in simulation.truth(simulation.capture.but(osrt=False)).values():
            assert truth.root_ledger == {cause: ns for cause, ns in truth.ledger.items() if ns}, name


def test_a_loader_is_one_only_where_the_trace_tells_so() -> None:
    """Told by NVTX ranges, by frames in samples, by the thread's name: without them what it did remains."""
    told = [("slow_read_and_queue", "nvtx", "io_wait"), ("decoding_worker", "samples", "host_compute")]
    for name, evidence, did in told:
        with_it, without = (only(scenario(name), EVERYTHING.but(**{evidence: seen})) for seen in (True, False))
        assert "data_loading" not in without.root_ledger
        assert without.root_ledger[did] == with_it.root_labels["data_loading"][did] + with_it.root_ledger.get(did, 0)
    assert "data_loading" in only(scenario("slow_read_and_pipe"), EVERYTHING.but(nvtx=False)).root_ledger


@pytest.mark.parametrize("name", WAITING)
def test_a_scenario_leads_to_its_root(name: str) -> None:
    (truth,) = scenario(name).truth().values()
    assert max(truth.root_ledger, key=lambda cause: truth.root_ledger[cause]) == SCENARIOS[name].root
    assert SCENARIOS[name].findings <= set(truth.root_ledger)
    assert not SCENARIOS[name].forbidden & {cause for cause, ns in truth.root_ledger.items() if ns > 0.02 * truth.idle}


class Rows:
    """The rows of one trace by thread: OS calls by name and start, and the times of scheduling in and out."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            calls = connection.execute(
                "SELECT globalTid, value, start, end FROM OSRT_API JOIN StringIds ON nameId = StringIds.id"
            )
            self.calls = set(calls.fetchall())
            self.scheduling = set(connection.execute("SELECT globalTid, isSchedIn, start FROM SCHED_EVENTS").fetchall())
        self._inward: dict[int, list[int]] = {}
        for tid, inward, start in sorted(self.scheduling, key=lambda row: row[2]):
            if inward:
                self._inward.setdefault(tid, []).append(start)

    def scheduled_in(self, thread: HostThread, time: int) -> int:
        """The first time from then on."""
        times = self._inward[_id(thread)]
        return times[bisect_left(times, time)]


def _id(thread: HostThread) -> int:
    return global_tid((thread.process.pid, thread.tid))


def woken(simulation: Simulation) -> list[tuple[HostThread, Waited]]:
    """The waits that another thread ended."""
    threads = [thread for process in simulation.processes for thread in process.threads]
    return [(thread, waited) for thread in threads for waited in thread.waits if waited.by is not None]


@pytest.mark.parametrize("name", [name for name in WAITING if name != "limit_reached"])
def test_the_rows_show_each_wait_and_its_waker(name: str, tmp_path: Path) -> None:
    """
    waker   ...[wake call ]           its row, where nsys records such calls; else its scheduling
    thread  out.................in
    """
    simulation = scenario(name)
    rows = Rows(simulation.write(tmp_path / "trace.sqlite"))
    waits = woken(simulation)
    assert waits
    for thread, waited in waits:
        assert shown(waited, EVERYTHING)
        assert (_id(thread), 0, waited.start) in rows.scheduling
        back = rows.scheduled_in(thread, waited.start)
        assert waited.by is not None
        call = waited.wake
        if call is not None and records_os_call(call, EVERYTHING):
            assert (_id(waited.by), call.name, call.start, call.end) in rows.calls
        if call is not None and call.kind == "os" and not thread.shares_core:
            assert WAKE_CALL_TO_CPU[0] <= back - call.start <= WAKE_CALL_TO_CPU[1]


def test_a_limit_that_is_reached_has_no_waker() -> None:
    assert woken(scenario("limit_reached")) == []


@pytest.mark.parametrize("name", WAITING)
def test_posts_and_waits_with_a_limit_are_never_recorded(name: str, tmp_path: Path) -> None:
    names = {call[1] for call in Rows(scenario(name).write(tmp_path / "trace.sqlite")).calls}
    assert not names & {"sem_post", "sem_clockwait"}


def test_exits_are_seen_less_than_a_millisecond_before_the_wait_ends() -> None:
    waits = [waited for _, waited in woken(scenario("joins")) if waited.by and waited.by.name == "gzip"]
    assert len(waits) == 3
    assert all(waited.by is not None and waited.until - waited.by.cpu[-1][1] == 700 * US for waited in waits)
