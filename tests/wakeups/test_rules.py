"""Who is taken for the waker, and what becomes data loading: one wait, a few rows, the root by hand.

```
              0.2 ms                                9.0 ms
T (MAIN)      [-------------- sem_wait --------------)[launch
NEIGHBOUR     on a CPU [2.0 ..................... 8.99)
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes.thread_waits import INTERPRETER_LOCK
from nsysdiag.config.settings import Settings, Thresholds
from nsysdiag.pipeline import analyze
from tests.builder import MAIN
from tests.causes.example import NEIGHBOUR, STRANGER, late
from tests.ledger.traces import devices, only_device, report_of
from tests.levels import quick

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Gap
    from tests.builder import ThreadId, TraceBuilder

MS, US = 1_000_000, 1_000
BEGAN, ENDED = 200 * US, 9 * MS
OTHER: ThreadId = (4242, 4301)


def waiting(call: str = "sem_wait") -> TraceBuilder:
    """T waits in `call` from 0.2 to 9 ms, and is off its CPU all that time but for the last 5 µs."""
    trace = late(10 * MS, schema="3.24.8").osrt(call, BEGAN, ENDED).process()
    return trace.sched(BEGAN + 5 * US, False).sched(ENDED - 5 * US, True)


def runs(trace: TraceBuilder, thread: ThreadId, start: int, end: int, cpu: int = 3) -> TraceBuilder:
    """The thread is on a CPU during [start, end)."""
    return trace.sched(start, True, thread=thread, cpu=cpu).sched(end, False, thread=thread, cpu=cpu)


def root_of(trace: TraceBuilder, path: Path) -> tuple[Gap, dict[str, int]]:
    """The gap with the wait, and how the root ledger differs from the ledger."""
    device = only_device(trace, path)
    assert sum(device.root_ledger.values()) == device.idle_ns
    moved = {
        cause: device.root_ledger.get(cause, 0) - device.ledger.get(cause, 0)
        for cause in {**device.ledger, **device.root_ledger}
    }
    return device.gaps[0], {cause: ns for cause, ns in moved.items() if ns}


def waker(gap: Gap) -> ThreadId | None:
    if gap.root is None or not gap.root.hops:
        return None
    thread = gap.root.hops[0].thread
    return thread.pid, thread.tid


def test_the_only_thread_that_ran_until_then(tmp_path: Path) -> None:
    gap, moved = root_of(runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US), tmp_path)
    assert waker(gap) == NEIGHBOUR
    # Off the CPU before 2 ms and after 8.99 ms for no known reason: there the wait stays a wait.
    assert moved == {"host_compute": 6_990 * US, "lock_wait": -6_990 * US}


class TestACallOfAnotherProcess:
    """A lock or a signal may be shared with it."""

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("call", "wakes"), [("sem_wait", "sem_post"), ("pthread_cond_wait", "pthread_cond_signal")]
    )
    def test_where_nobody_else_can_have_ended_the_wait(self, call: str, wakes: str, tmp_path: Path) -> None:
        trace = waiting(call).osrt(wakes, ENDED - 25 * US, ENDED - 20 * US, thread=STRANGER)
        gap, _ = root_of(trace, tmp_path)
        assert waker(gap) == STRANGER
        assert gap.root is not None
        assert gap.root.confidence == pytest.approx(0.6, abs=0.01)

    def test_who_ran_in_the_own_process_comes_first(self, tmp_path: Path) -> None:
        trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US)
        trace.osrt("sem_post", ENDED - 25 * US, ENDED - 20 * US, thread=STRANGER)
        assert waker(root_of(trace, tmp_path)[0]) == NEIGHBOUR

    def test_of_several_it_is_none(self, tmp_path: Path) -> None:
        trace = waiting()
        for thread in (STRANGER, (7000, 7000)):
            trace.osrt("sem_post", ENDED - 25 * US, ENDED - 20 * US, thread=thread)
        assert waker(root_of(trace, tmp_path)[0]) is None


def test_of_two_that_ran_neither_is_sure(tmp_path: Path) -> None:
    trace = runs(runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US), OTHER, 3 * MS, 9_500 * US, cpu=4)
    gap, moved = root_of(trace, tmp_path)
    assert (waker(gap), moved) == (None, {})
    assert gap.root is not None
    assert gap.root.cause == "lock_wait"


def test_a_thread_that_stopped_long_before_is_none(tmp_path: Path) -> None:
    gap, moved = root_of(runs(waiting(), NEIGHBOUR, 2 * MS, 8_800 * US), tmp_path)
    assert (waker(gap), moved) == (None, {})


def test_a_thread_of_another_process_releases_no_lock(tmp_path: Path) -> None:
    gap, moved = root_of(runs(waiting(), STRANGER, 2 * MS, 8_990 * US), tmp_path)
    assert (waker(gap), moved) == (None, {})


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["[NSys]", "[NSys Comms]", "*2CommsProcesso"])
def test_the_profiler_s_own_threads_wake_nobody(name: str, tmp_path: Path) -> None:
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).thread_name(name, thread=NEIGHBOUR)
    gap, moved = root_of(trace, tmp_path)
    assert (waker(gap), moved) == (None, {})


def test_a_wake_call_goes_before_runs(tmp_path: Path) -> None:
    """
    NEIGHBOUR  runs all the time
    OTHER      reads from 1 to 8.9 ms, signals 40 µs before T comes in
    """
    trace = runs(waiting("pthread_cond_wait"), NEIGHBOUR, 2 * MS, 9_900 * US)
    trace.osrt("pread64", 1 * MS, 8_900 * US, thread=OTHER)
    trace.osrt("pthread_cond_signal", 8_955 * US, 8_960 * US, thread=OTHER)
    gap, moved = root_of(trace, tmp_path)
    assert waker(gap) == OTHER
    assert moved == {"io_wait": 7_900 * US, "lock_wait": -7_900 * US}


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param(8_800 * US, 8_890 * US, id="long before the end"),
        pytest.param(9_050 * US, 9_060 * US, id="after it"),
        pytest.param(150 * US, 190 * US, id="before the wait"),
    ],
)
def test_a_signal_at_another_time_is_no_wake(start: int, end: int, tmp_path: Path) -> None:
    trace = waiting("pthread_cond_wait").osrt("pthread_cond_signal", start, end, thread=OTHER)
    gap, moved = root_of(trace, tmp_path)
    assert (waker(gap), moved) == (None, {})


def test_a_signal_does_not_end_a_semaphore_s_wait(tmp_path: Path) -> None:
    trace = waiting("sem_wait").osrt("pthread_cond_signal", 8_955 * US, 8_960 * US, thread=OTHER)
    assert root_of(trace, tmp_path)[1] == {}


def test_a_write_of_any_process_ends_a_read(tmp_path: Path) -> None:
    trace = waiting("read").osrt("write", 8_950 * US, 8_960 * US, thread=STRANGER)
    trace = runs(trace, STRANGER, 1 * MS, 9_500 * US).process(STRANGER[0], "/usr/sbin/exporter")
    gap, moved = root_of(trace, tmp_path)
    assert waker(gap) == STRANGER
    # Another program's process is no data-loading worker.
    assert moved == {"host_compute": 7_950 * US, "io_wait": -7_950 * US}


def test_a_worker_process_of_the_same_program_loads_data(tmp_path: Path) -> None:
    trace = waiting("read").osrt("write", 8_950 * US, 8_960 * US, thread=STRANGER)
    trace = runs(trace, STRANGER, 1 * MS, 9_500 * US).process(STRANGER[0])
    device = only_device(trace, tmp_path)
    assert device.root_ledger["data_loading"] == 8_800 * US
    assert device.root_labels["data_loading"] == {"host_compute": 7_950 * US, "io_wait": 850 * US}
    assert device.verdict.id == "input-bound"


def test_a_process_with_work_on_a_gpu_is_no_loader(tmp_path: Path) -> None:
    trace = waiting("read").osrt("write", 8_950 * US, 8_960 * US, thread=STRANGER)
    trace = runs(trace, STRANGER, 1 * MS, 9_500 * US).process(STRANGER[0])
    trace.kernel(20 * MS, 21 * MS, launch=(19 * MS, 19 * MS + 5 * US), thread=STRANGER, device=1)
    found = devices(trace, tmp_path).values()
    assert len(found) == 2
    assert all("data_loading" not in device.root_ledger for device in found)


def test_a_read_of_a_file_is_ended_by_nobody(tmp_path: Path) -> None:
    """`pread64` reads files only: a write at its end is a coincidence."""
    trace = waiting("pread64").osrt("write", 8_950 * US, 8_960 * US, thread=STRANGER)
    assert root_of(trace, tmp_path)[1] == {}


@pytest.mark.parametrize(("calls", "sure"), [(2, True), (60, False)])
def test_a_thread_that_signals_all_the_time_is_not_to_be_trusted(calls: int, sure: bool, tmp_path: Path) -> None:
    """60 signals in 10 ms: one falls into any 115 µs."""
    trace = waiting("pthread_cond_wait").osrt("pthread_cond_signal", 8_950 * US, 8_955 * US, thread=OTHER)
    for number in range(calls - 1):
        trace.osrt("pthread_cond_signal", (300 + 140 * number) * US, (302 + 140 * number) * US, thread=OTHER)
    trace.osrt("pread64", 9_100 * US, 9_200 * US, thread=OTHER)
    gap, _ = root_of(runs(trace, OTHER, 250 * US, 9_700 * US), tmp_path)
    assert (waker(gap) == OTHER) is sure


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["pt_data_worker", "DataLoader-0", "prefetcher"])
def test_a_thread_s_name_makes_it_a_loader(name: str, tmp_path: Path) -> None:
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).thread_name(name, thread=NEIGHBOUR)
    device = only_device(trace, tmp_path)
    assert device.root_ledger["data_loading"] == 8_800 * US
    assert device.root_labels["data_loading"] == {"host_compute": 6_990 * US, "lock_wait": 1_810 * US}


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["trainer", "checkpoint writer", "downloader-logger"])
def test_other_names_do_not(name: str, tmp_path: Path) -> None:
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).thread_name(name, thread=NEIGHBOUR)
    assert "data_loading" not in only_device(trace, tmp_path).root_ledger


def test_a_range_of_the_waker_names_it_a_loader(tmp_path: Path) -> None:
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).nvtx("load_batch", 3 * MS, 8 * MS, thread=NEIGHBOUR)
    assert only_device(trace, tmp_path).root_ledger["data_loading"] == 8_800 * US


def test_a_range_at_another_time_does_not(tmp_path: Path) -> None:
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).nvtx("load_batch", 9_100 * US, 9_300 * US, thread=NEIGHBOUR)
    assert "data_loading" not in only_device(trace, tmp_path).root_ledger


def test_a_range_of_the_waiting_thread_says_what_it_waited_for(tmp_path: Path) -> None:
    """`next(dataloader)` around a wait that another thread ended."""
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).nvtx("next(dataloader)", 100 * US, 9_100 * US)
    device = only_device(trace, tmp_path)
    assert device.root_labels["data_loading"] == {"host_compute": 6_990 * US, "lock_wait": 1_810 * US}


def test_a_range_alone_proves_nothing(tmp_path: Path) -> None:
    """Nobody is shown to have ended the wait: it is its own root."""
    device = only_device(waiting().nvtx("next(dataloader)", 100 * US, 9_100 * US), tmp_path)
    assert device.root_ledger == device.ledger


def test_a_thread_that_reads_by_itself_waits_for_no_loader(tmp_path: Path) -> None:
    trace = waiting("read").nvtx("next(dataloader)", 100 * US, 9_100 * US)
    device = only_device(trace, tmp_path)
    assert device.root_ledger == device.ledger


def test_waits_of_the_switch_interval_are_for_the_interpreter(tmp_path: Path) -> None:
    """
    T  [timedwait 5.1][timedwait 5.1][timedwait 5.1][0.3]
    """
    trace, begin = late(20 * MS), 200 * US
    for length in (5_100 * US, 5_100 * US, 5_100 * US, 300 * US):
        trace.osrt("pthread_cond_timedwait", begin, begin + length)
        begin += length + 10 * US
    device = only_device(runs(trace, NEIGHBOUR, 100 * US, 19 * MS), tmp_path)
    assert device.labels["lock_wait"] == {INTERPRETER_LOCK.words: 15_600 * US}
    # Whoever holds it is named, and the lock stays the root.
    assert device.root_ledger["lock_wait"] == device.ledger["lock_wait"]
    assert waker(device.gaps[0]) == NEIGHBOUR


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("length", "again_after", "told"),
    [
        (9_000 * US, 100 * US, 20_400 * US + 9_300 * US),
        (20 * MS, 100 * US, 20_400 * US + 20_300 * US),
        (20 * MS + 1, 100 * US, 20_400 * US),  # no timer is that late
        (9_000 * US, 100 * US + 1, 20_400 * US),
    ],
)
def test_a_late_timer_is_one_where_the_thread_waits_again(
    length: int, again_after: int, told: int, tmp_path: Path
) -> None:
    """
    T  [timedwait 5.1]  [timedwait 5.1]  [timedwait 5.1]  [timedwait 5.1]  [timedwait 9.0][0.3]
    """
    trace, begin = late(60 * MS), 200 * US
    for each, idle in (
        (5_100 * US, 10 * US),
        *[(5_100 * US, MS)] * 3,
        (length, again_after),
        (300 * US, MS),
    ):
        trace.osrt("pthread_cond_timedwait", begin, begin + each)
        begin += each + idle
    device = only_device(trace, tmp_path)
    assert device.labels["lock_wait"] == {INTERPRETER_LOCK.words: told}


def test_a_timer_of_5_ms_is_no_interpreter_lock(tmp_path: Path) -> None:
    """Each wait ends by its timeout, and none follows at once: a program that gathers requests for a while."""
    trace, begin = late(60 * MS), 200 * US
    for _ in range(6):
        trace.osrt("pthread_cond_timedwait", begin, begin + 5_060 * US)
        begin += 8 * MS
    assert INTERPRETER_LOCK.words not in only_device(trace, tmp_path).labels.get("lock_wait", {})


def test_a_loop_of_longer_waits_beside_is_none(tmp_path: Path) -> None:
    """A native thread's own: 10 ms, again and again."""
    trace, begin = late(120 * MS), 200 * US
    for length, idle in (*[(5_100 * US, 10 * US)] * 5, (5_100 * US, MS), *[(10_060 * US, 10 * US)] * 2):
        trace.osrt("pthread_cond_timedwait", begin, begin + length)
        begin += length + idle
    assert only_device(trace, tmp_path).labels["lock_wait"] == {INTERPRETER_LOCK.words: 30_600 * US}


def test_waits_of_other_lengths_are_not(tmp_path: Path) -> None:
    trace, begin = late(40 * MS), 200 * US
    for length in (5_100 * US, 5_100 * US, 9_100 * US, 9_200 * US, 9_300 * US):
        trace.osrt("pthread_cond_timedwait", begin, begin + length)
        begin += length + 200 * US
    assert "lock_wait" not in only_device(trace, tmp_path).labels


def test_two_hops(tmp_path: Path) -> None:
    """
    T          [sem_wait ----------------------------)    0.2 to 9 ms
    NEIGHBOUR    [sem_wait ------)[computes --)           0.3 to 6 ms, then runs to 8.99 ms
    OTHER        [pread64 -----]                          0.3 to 5.9 ms, then runs to 5.99 ms
    """
    trace = waiting().osrt("sem_wait", 300 * US, 6 * MS, thread=NEIGHBOUR)
    trace.sched(305 * US, False, thread=NEIGHBOUR, cpu=3).sched(5_995 * US, True, thread=NEIGHBOUR, cpu=3)
    trace.sched(8_990 * US, False, thread=NEIGHBOUR, cpu=3)
    trace.osrt("pread64", 300 * US, 5_900 * US, thread=OTHER)
    trace.sched(310 * US, False, thread=OTHER, cpu=4).sched(5_895 * US, True, thread=OTHER, cpu=4)
    trace.sched(5_990 * US, False, thread=OTHER, cpu=4)
    gap, moved = root_of(trace, tmp_path)
    assert gap.root is not None
    assert [hop.thread.tid for hop in gap.root.hops] == [NEIGHBOUR[1], OTHER[1]]
    assert gap.root.cause == "io_wait"
    assert moved["io_wait"] == 5_600 * US
    assert gap.root.confidence == pytest.approx(0.85**2, abs=1e-4)


def test_a_file_that_the_waker_read_is_named(tmp_path: Path) -> None:
    trace = waiting("pthread_cond_wait")
    trace.osrt("pread64", 1 * MS, 8_900 * US, thread=OTHER)
    trace.osrt("pthread_cond_signal", 8_955 * US, 8_960 * US, thread=OTHER)
    for number, path in enumerate(("/data/train-00017.tar", "/data/other.tar")):
        trace.row("OSRT_FILE_ACCESS_DESCRIPTORS", {"fileAccessId": number, "processId": 4242, "filePath": path})
    trace.row(
        "OSRT_FILE_ACCESS_EVENTS",
        {"fileAccessId": 0, "startedAt": 1 * MS, "endedAt": 8_900 * US, "threadId": OTHER[1]},
    )
    trace.row(
        "OSRT_FILE_ACCESS_EVENTS",
        {"fileAccessId": 1, "startedAt": 1 * MS, "endedAt": 8_900 * US, "threadId": MAIN[1]},
    )
    gap, _ = root_of(trace, tmp_path)
    assert gap.root is not None
    assert "of /data/train-00017.tar" in gap.root.chain[1]
    assert "other.tar" not in " ".join(gap.root.chain)


def test_a_process_of_an_unknown_program_is_no_loader(tmp_path: Path) -> None:
    """Without the names of processes nothing says that the writer belongs to the program."""
    trace = waiting("read").osrt("write", 8_950 * US, 8_960 * US, thread=STRANGER).drop_table("PROCESSES")
    gap, moved = root_of(runs(trace, STRANGER, 1 * MS, 9_500 * US), tmp_path)
    assert waker(gap) == STRANGER
    assert moved == {"host_compute": 7_950 * US, "io_wait": -7_950 * US}


def test_what_a_waker_did_by_a_disabled_cause_is_not_known(tmp_path: Path) -> None:
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US)
    device = only_device(trace, tmp_path, Settings(disabled=("host_compute",)))
    assert device.root_ledger == device.ledger
    root = device.gaps[0].root
    assert root is not None
    assert root.cause == "lock_wait"


def test_data_loading_can_be_disabled(tmp_path: Path) -> None:
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).thread_name("pt_data_worker", thread=NEIGHBOUR)
    device = only_device(trace, tmp_path, Settings(disabled=("data_loading",)))
    assert device.root_ledger["lock_wait"] == 1_810 * US
    assert "data_loading" not in device.root_ledger


def test_a_launch_between_two_waits_keeps_them_apart(tmp_path: Path) -> None:
    """
    T          [poll ---------)[launch][poll ---------)[launch]    25 µs between the calls
    NEIGHBOUR  [pread64 -----][write
    OTHER      [pread64 ------------------------------][write
    """
    trace = late(9_100 * US).osrt("poll", BEGAN, 9_070 * US).osrt("poll", 9_095 * US, 20 * MS)
    trace.kernel(20_050 * US, 20_100 * US, launch=(20_010 * US, 20_020 * US))
    for thread, at in ((NEIGHBOUR, 9_040 * US), (OTHER, 19_970 * US)):
        trace.osrt("pread64", 300 * US, at - 100 * US, thread=thread).osrt("write", at, at + 5 * US, thread=thread)
    gaps = sorted(only_device(trace, tmp_path).gaps, key=lambda gap: gap.start_ns)
    assert [waker(gap) for gap in gaps] == [NEIGHBOUR, OTHER]


@pytest.mark.parametrize("seed", quick(range(4), 4))
def test_of_two_calls_at_the_same_time_it_is_always_the_same(seed: int, tmp_path: Path) -> None:
    """OTHER's broadcast and its signal begin together, 10 µs before T comes in."""
    trace = waiting("pthread_cond_wait").osrt("pread64", 1 * MS, 8_900 * US, thread=OTHER)
    trace.osrt("pthread_cond_broadcast", 8_985 * US, 8_986 * US, thread=OTHER)
    trace.osrt("pthread_cond_signal", 8_985 * US, 8_986 * US, thread=OTHER)
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite", shuffle_seed=seed)).devices
    root = device.gaps[0].root
    assert root is not None
    assert root.hops[0].how == "woke it by pthread_cond_broadcast"


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("neighbour", [NEIGHBOUR, (4242, 4299)], ids=["lower number", "lowest number"])
def test_a_thread_that_came_in_and_never_left_runs_on(neighbour: ThreadId, tmp_path: Path) -> None:
    """Of the two that ran, OTHER left its CPU 20 µs after T came in; the neighbour, on the last lane or not, is still
    there at the end of the capture."""
    late_one: ThreadId = (4242, 4399)
    trace = runs(waiting(), OTHER, 3 * MS, 9_015 * US, cpu=4)
    for thread in (neighbour, late_one):
        trace.sched(2 * MS, True, thread=thread, cpu=thread[1] % 7)
    device = only_device(trace, tmp_path, Settings(thresholds=Thresholds(root_floor=0.3)))
    assert waker(device.gaps[0]) == OTHER


@pytest.mark.parametrize("seed", quick(range(4), 4))
def test_which_samples_are_looked_at_does_not_depend_on_their_order(seed: int, tmp_path: Path) -> None:
    """Of 200 samples every third is looked at: the fourth is."""
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US)
    for number in range(200):
        symbol = "_worker_loop" if number == 3 else "main"
        trace.sample((2_000 + 30 * number) * US, thread=NEIGHBOUR, symbols=(symbol,))
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite", shuffle_seed=seed)).devices
    assert "data_loading" in device.root_ledger


def test_a_chain_that_leads_nowhere_makes_nothing_sure(tmp_path: Path) -> None:
    """
    T          [sem_wait: nobody known ---------)[cond_wait ----)     0.2 to 6 ms, 6.1 to 9 ms
    OTHER                                          [pread64 -][signal
    """
    trace = late(10 * MS, schema="3.24.8").osrt("sem_wait", BEGAN, 6 * MS)
    trace.osrt("pthread_cond_wait", 6_100 * US, ENDED).osrt("pread64", 6_200 * US, 8_900 * US, thread=OTHER)
    trace.osrt("pthread_cond_signal", 8_955 * US, 8_960 * US, thread=OTHER)
    report = report_of(trace, tmp_path)
    root = report.devices[0].gaps[0].root
    assert root is not None
    assert root.hops == []
    (finding,) = [each for each in report.findings if each.cause == "io_wait"]
    assert finding.confidence <= 0.5


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("thread", "name"), [(NEIGHBOUR, "load_batch"), (MAIN, "next(dataloader)")])
def test_a_short_range_names_no_long_wait(thread: ThreadId, name: str, tmp_path: Path) -> None:
    """50 µs of 8.8 ms."""
    trace = runs(waiting(), NEIGHBOUR, 2 * MS, 8_990 * US).nvtx(name, 3 * MS, 3_050 * US, thread=thread)
    assert "data_loading" not in only_device(trace, tmp_path).root_ledger
