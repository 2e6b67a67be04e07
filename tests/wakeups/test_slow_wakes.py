"""Wakers of threads that came in late: behind others on their CPU, or slowly after the usual waker's call.

```
                                        woken            comes in
T (MAIN)      [------------- sem_wait ---|----- queued ---)[launch
NEIGHBOUR     on CPU 3 [................]
OTHER                                 [... on T's CPU ...]
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.wakeups.wakers import BEFORE_NS, QUEUED_NS, SLOW_NS
from tests.builder import TraceBuilder
from tests.causes.example import NEIGHBOUR, STRANGER
from tests.ledger.traces import report_of
from tests.wakeups.test_rules import BEGAN, ENDED, MS, OTHER, US, root_of, runs, waiting, waker

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Gap
    from tests.builder import ThreadId

CAME_IN = ENDED - 5 * US
OCCUPANT: ThreadId = (9000, 9000)
ANOTHER: ThreadId = (5001, 5001)
LONG_BEFORE = CAME_IN - 3 * BEFORE_NS


def queued(trace: TraceBuilder, since: int, until: int = CAME_IN) -> TraceBuilder:
    """Another program holds T's CPU."""
    return runs(trace, OCCUPANT, since, until, cpu=0)


class TestBehindOthers:
    """T's CPU was held until T came in."""

    def test_who_ran_until_the_queue_began(self, tmp_path: Path) -> None:
        trace = queued(runs(waiting(), NEIGHBOUR, 2 * MS, LONG_BEFORE), LONG_BEFORE)
        gap, moved = root_of(trace, tmp_path)
        assert waker(gap) == NEIGHBOUR
        assert moved == {"host_compute": LONG_BEFORE - 2 * MS, "lock_wait": 2 * MS - LONG_BEFORE}

    @pytest.mark.slow
    def test_it_is_less_sure(self, tmp_path: Path) -> None:
        confidence = []
        for number, until in enumerate((CAME_IN - US, LONG_BEFORE)):
            folder = tmp_path / str(number)
            folder.mkdir()
            gap, _ = root_of(queued(runs(waiting(), NEIGHBOUR, 2 * MS, until), LONG_BEFORE), folder)
            assert gap.root is not None
            confidence.append(gap.root.confidence)
        assert confidence == [0.85, 0.765]

    @pytest.mark.slow
    @pytest.mark.parametrize("until", [CAME_IN, CAME_IN - BEFORE_NS])
    def test_the_cpu_may_have_been_left_just_before(self, until: int, tmp_path: Path) -> None:
        trace = queued(runs(waiting(), NEIGHBOUR, 2 * MS, LONG_BEFORE), LONG_BEFORE, until)
        assert waker(root_of(trace, tmp_path)[0]) == NEIGHBOUR

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("since", "until", "cpu"),
        [
            (LONG_BEFORE, CAME_IN - BEFORE_NS - 1, 0),  # the CPU was free when T came in
            (LONG_BEFORE, CAME_IN, 1),  # another CPU
            (LONG_BEFORE + BEFORE_NS + 1, CAME_IN, 0),  # held from too late on
        ],
    )
    def test_else_nobody(self, since: int, until: int, cpu: int, tmp_path: Path) -> None:
        trace = runs(runs(waiting(), NEIGHBOUR, 2 * MS, LONG_BEFORE), OCCUPANT, since, until, cpu=cpu)
        assert waker(root_of(trace, tmp_path)[0]) is None

    @pytest.mark.parametrize(("idle_ns", "found"), [(10 * US, True), (10 * US + 1, False)])
    def test_several_one_after_the_other(self, idle_ns: int, found: bool, tmp_path: Path) -> None:
        trace = runs(waiting(), NEIGHBOUR, 2 * MS, LONG_BEFORE)
        middle = CAME_IN - BEFORE_NS
        trace = runs(queued(trace, middle), STRANGER, LONG_BEFORE - 20 * US, middle - idle_ns, cpu=0)
        assert (waker(root_of(trace, tmp_path)[0]) == NEIGHBOUR) is found

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("start", "found"),
        [(LONG_BEFORE - 2 * BEFORE_NS, False), (LONG_BEFORE + US, False), (CAME_IN, False), (CAME_IN + US, True)],
    )
    def test_not_where_another_thread_ran_meanwhile(self, start: int, found: bool, tmp_path: Path) -> None:
        trace = queued(runs(waiting(), NEIGHBOUR, 2 * MS, LONG_BEFORE), LONG_BEFORE)
        gap, _ = root_of(runs(trace, OTHER, start, start + 200 * US, cpu=4), tmp_path)
        assert (waker(gap) == NEIGHBOUR) is found

    def test_a_call_of_that_time(self, tmp_path: Path) -> None:
        trace = queued(waiting("read"), LONG_BEFORE).osrt("write", LONG_BEFORE, LONG_BEFORE + US, thread=STRANGER)
        gap, _ = root_of(trace, tmp_path)
        assert waker(gap) == STRANGER
        assert gap.root is not None
        assert gap.root.hops[0].how == "woke it by write"

    def test_who_ran_in_the_midst_of_a_long_queue_is_nobody(self, tmp_path: Path) -> None:
        """T was woken before: OTHER had stopped when NEIGHBOUR began."""
        trace = queued(waiting(), CAME_IN - QUEUED_NS - MS)
        trace = runs(trace, NEIGHBOUR, CAME_IN - QUEUED_NS - 10 * US, CAME_IN - MS)
        assert waker(root_of(trace, tmp_path)[0]) is None

    def test_who_ran_before_the_wait_began_ended_nothing(self, tmp_path: Path) -> None:
        trace = queued(runs(waiting(), NEIGHBOUR, 20 * US, BEGAN - 50 * US), BEGAN + 6 * US)
        assert waker(root_of(trace, tmp_path)[0]) is None

    def test_a_wait_with_a_time_limit_may_have_ended_before_the_queue(self, tmp_path: Path) -> None:
        trace = queued(waiting("poll"), LONG_BEFORE).osrt("write", LONG_BEFORE, LONG_BEFORE + US, thread=STRANGER)
        assert waker(root_of(trace, tmp_path)[0]) is None

    def test_of_several_calls_the_first_woke_it(self, tmp_path: Path) -> None:
        trace = queued(waiting("pthread_cond_wait"), LONG_BEFORE)
        calls = [LONG_BEFORE + 10 * US + each * 20 * US for each in range(5)]
        for at in calls:
            trace.osrt("pthread_cond_signal", at, at + US, thread=NEIGHBOUR)
        gap, _ = root_of(trace, tmp_path)
        assert waker(gap) == NEIGHBOUR
        assert gap.root is not None
        assert gap.root.hops[0].at_ns == calls[0]

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("before", "found"), [(BEFORE_NS, True), (BEFORE_NS + 1, False)])
    def test_the_queue_has_an_end(self, before: int, found: bool, tmp_path: Path) -> None:
        """T's CPU is held for longer than threads stand in queues."""
        began, ended, called = MS, 30 * MS, 30 * MS - 5 * US - QUEUED_NS - before
        trace = TraceBuilder(schema="3.24.8").process().kernel(10 * US, 110 * US, launch=(US, 5 * US))
        trace.kernel(ended + 20 * US, ended + 120 * US, launch=(ended, ended + 10 * US)).osrt("read", began, ended)
        trace.sched(began + 5 * US, False).sched(ended - 5 * US, True)
        trace.osrt("write", called, called + US, thread=STRANGER)
        gap, _ = root_of(queued(trace, 2 * MS, ended - 5 * US), tmp_path)
        assert (waker(gap) == STRANGER) is found


def repeated(last_call: int | None, last_run: tuple[int, int] | None, others: int = 6, second: int = 0) -> TraceBuilder:
    """Reads of 8 ms every 10 ms: a stranger's writes end all but the last, before whose end it calls or runs so many
    ns, if at all. The first waits, `second` of them, are ended by another."""
    trace = TraceBuilder(schema="3.24.8").process().kernel(10 * US, 110 * US, launch=(US, 5 * US))
    trace.process(STRANGER[0], "/usr/bin/writer").process(ANOTHER[0], "/usr/bin/writer")
    for number in range(others + 1):
        at = number * 10 * MS
        trace.osrt("read", at + BEGAN, at + ENDED).sched(at + BEGAN, False).sched(at + CAME_IN, True)
        trace.kernel(at + ENDED + 100 * US, at + ENDED + MS, launch=(at + ENDED + 50 * US, at + ENDED + 60 * US))
        if number < others:
            thread = ANOTHER if number < second else STRANGER
            trace.osrt("write", at + CAME_IN - 20 * US, at + CAME_IN - 10 * US, thread=thread)
    if last_call is not None:
        trace.osrt("write", at + CAME_IN - last_call, at + CAME_IN - last_call + US, thread=STRANGER)
    if last_run is not None:
        runs(trace, STRANGER, at + CAME_IN - last_run[0], at + CAME_IN - last_run[1])
    return trace


def last_gap(trace: TraceBuilder, path: Path) -> Gap:
    (device,) = report_of(trace, path).devices
    return max(device.gaps, key=lambda gap: gap.start_ns)


class TestTheUsualWaker:
    """One thread ended the other waits by calls."""

    def test_chance_makes_no_habit(self, tmp_path: Path) -> None:
        """Another thread, always on a CPU, calls just before the end of six waits of thirty: it ends none of them."""
        trace = repeated(None, (MS, US), 6)
        for number in range(7, 30):
            at = number * 10 * MS
            trace.osrt("read", at + BEGAN, at + ENDED).sched(at + BEGAN, False).sched(at + CAME_IN, True)
            trace.kernel(at + ENDED + 100 * US, at + ENDED + MS, launch=(at + ENDED + 50 * US, at + ENDED + 60 * US))
        (device,) = report_of(trace, tmp_path).devices
        assert sum(waker(gap) == STRANGER for gap in device.gaps) == 0

    def test_who_runs_nearly_always_is_no_evidence(self, tmp_path: Path) -> None:
        trace = repeated(None, None)
        runs(trace, STRANGER, -90 * MS, 150 * MS)
        assert waker(last_gap(trace, tmp_path)) is None

    def test_who_calls_all_the_time_is_not_to_be_trusted(self, tmp_path: Path) -> None:
        """A call every 0.2 ms: one is always near."""
        trace = repeated(None, None)
        for at in range(0, 60 * MS, 200 * US):
            trace.osrt("write", at + US, at + 2 * US, thread=STRANGER)
        trace.osrt("write", 60 * MS + CAME_IN - 500 * US, 60 * MS + CAME_IN - 499 * US, thread=STRANGER)
        assert waker(last_gap(trace, tmp_path)) is None

    @pytest.mark.sampled(quick=5)
    @pytest.mark.parametrize(
        ("call", "run", "others", "found"),
        [
            (SLOW_NS, None, 6, True),
            (SLOW_NS + 1, None, 6, False),
            (None, (MS, US), 6, True),
            (None, (MS, BEFORE_NS), 6, True),
            (None, (MS, BEFORE_NS + 1), 6, False),
            (None, None, 6, False),
            (SLOW_NS, None, 5, True),
            (SLOW_NS, None, 4, False),
        ],
    )
    def test_its_last_call_or_run(
        self, call: int | None, run: tuple[int, int] | None, others: int, found: bool, tmp_path: Path
    ) -> None:
        gap = last_gap(repeated(call, run, others), tmp_path)
        assert (waker(gap) == STRANGER) is found
        if found:
            assert gap.root is not None
            assert gap.root.hops[0].how == "its calls end nearly all such waits"

    @pytest.mark.sampled(quick=3)
    @pytest.mark.parametrize(
        ("call", "run"), [(2 * MS, None), (None, (4 * MS, 2 * MS))], ids=["its last call", "until then it ran"]
    )
    @pytest.mark.parametrize(
        ("held_ns", "found"), [(1_610 * US, True), (1_590 * US, False), (0, False)], ids=["80%", "less", "not at all"]
    )
    def test_long_before_where_others_held_the_cpu_since(
        self, call: int | None, run: tuple[int, int] | None, held_ns: int, found: bool, tmp_path: Path
    ) -> None:
        trace = repeated(call, run)
        until = 6 * 10 * MS + CAME_IN - BEFORE_NS - US
        if held_ns:
            queued(trace, until - held_ns, until)
        assert (waker(last_gap(trace, tmp_path)) == STRANGER) is found

    @pytest.mark.slow
    def test_not_longer_ago_than_a_queue_may_last(self, tmp_path: Path) -> None:
        for number, (ago, found) in enumerate(((QUEUED_NS, True), (QUEUED_NS + US, False))):
            at = 60 * MS + CAME_IN
            trace = queued(repeated(ago, None), at - 6 * MS, at - BEFORE_NS - US)
            # In so long a trace a call is rarely there by chance.
            trace.kernel(2_000 * MS, 2_001 * MS, launch=(1_999 * MS, 1_999 * MS + US))
            folder = tmp_path / str(number)
            folder.mkdir()
            (device,) = report_of(trace, folder).devices
            (gap,) = (gap for gap in device.gaps if gap.start_ns < at < gap.end_ns)
            assert (waker(gap) == STRANGER) is found

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("ago", "found"), [(2 * MS, True), (4 * MS, False)])
    def test_who_runs_now_and_then_was_there_by_chance(self, ago: int, found: bool, tmp_path: Path) -> None:
        """It runs once in 10 ms: the further back, the likelier that it did."""
        trace, at = repeated(None, (ago + 50 * US, ago)), 60 * MS + CAME_IN
        for number in range(6):
            runs(trace, STRANGER, number * 10 * MS + MS, number * 10 * MS + MS + 20 * US)
        assert (waker(last_gap(queued(trace, at - 5 * MS, at - BEFORE_NS), tmp_path)) == STRANGER) is found

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("second", "found"), [(2, True), (3, False)])
    def test_it_ended_four_of_five_at_least(self, second: int, found: bool, tmp_path: Path) -> None:
        """Nine or eight of eleven waits of the same length, with the last."""
        trace = repeated(SLOW_NS, None, 10, second)
        assert (waker(last_gap(trace, tmp_path)) == STRANGER) is found


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("blocked", [False, True])
def test_who_writes_to_a_pipe_ends_reads_of_it_and_no_others(blocked: bool, tmp_path: Path) -> None:
    """A batch takes one read that waits and others that return at once, or that something else ends, such as a disk.
    Who writes ends all of the waits, but not half of the reads: its writes come too seldom to be there by chance."""
    trace = repeated(None, None, 11)
    trace.osrt("write", 110 * MS + CAME_IN - 20 * US, 110 * MS + CAME_IN - 10 * US, thread=STRANGER)
    for began in (number * 10 * MS + at * US for number in range(1, 12) for at in (20, 75, 130)):
        trace.osrt("read", began, began + 40 * US)
        if blocked:
            trace.sched(began + 5 * US, False).sched(began + 35 * US, True)
    (device,) = report_of(trace, tmp_path).devices
    assert sum(waker(gap) == STRANGER for gap in device.gaps) == 12


@pytest.mark.sampled(quick=1)
def test_who_writes_all_the_time_is_there_by_chance(tmp_path: Path) -> None:
    """As above, and the same thread writes every 100 us: at the end of any read it has just written."""
    trace = repeated(None, None, 11)
    for began in (number * 10 * MS + at * US for number in range(1, 12) for at in (20, 75, 130)):
        trace.osrt("read", began, began + 40 * US).sched(began + 5 * US, False).sched(began + 35 * US, True)
    for at in range(0, 120 * MS, 100 * US):
        trace.osrt("write", at, at + 10 * US, thread=STRANGER)
    (device,) = report_of(trace, tmp_path).devices
    assert sum(waker(gap) == STRANGER for gap in device.gaps) == 0


def doubtful(others: int = 6, *, held: bool = True, usual: int = 300 * US) -> TraceBuilder:
    """Before the last wait of several the usual waker calls, then somebody else does just before its end; T's CPU is
    held by others meanwhile."""
    trace, at = repeated(usual, None, others), others * 10 * MS
    trace.osrt("write", at + CAME_IN - 30 * US, at + CAME_IN - 29 * US, thread=ANOTHER)
    return queued(trace, at + CAME_IN - MS, at + CAME_IN - 5 * US) if held else trace


class TestACallByChance:
    """Just before the end of a wait somebody calls who does not end such waits."""

    def test_in_a_queue_it_was_the_usual_one(self, tmp_path: Path) -> None:
        gap = last_gap(doubtful(), tmp_path)
        assert waker(gap) == STRANGER
        assert gap.root is not None
        assert gap.root.confidence < 0.75

    def test_who_came_in_at_once_was_woken_just_before(self, tmp_path: Path) -> None:
        assert waker(last_gap(doubtful(held=False), tmp_path)) == ANOTHER

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("ago", "usual"), [(MS, True), (MS + BEFORE_NS + 1, False)])
    def test_a_call_before_the_queue_began_was_followed_at_once(self, ago: int, usual: bool, tmp_path: Path) -> None:
        trace, at = repeated(ago - 200 * US, None, 6), 60 * MS
        trace.osrt("write", at + CAME_IN - 30 * US, at + CAME_IN - 29 * US, thread=ANOTHER)
        gap = last_gap(queued(trace, at + CAME_IN - 800 * US), tmp_path)
        assert waker(gap) == (STRANGER if usual else ANOTHER)

    def test_a_cpu_that_stood_idle_is_no_queue(self, tmp_path: Path) -> None:
        trace, at = doubtful(held=False), 60 * MS
        queued(trace, at + CAME_IN - MS, at + CAME_IN - 90 * US)
        assert waker(last_gap(trace, tmp_path)) == ANOTHER

    def test_who_made_room_may_be_either(self, tmp_path: Path) -> None:
        """The one that called held T's CPU, and went off it."""
        trace, at = doubtful(held=False), 60 * MS
        runs(trace, ANOTHER, at + CAME_IN - MS, at + CAME_IN - 5 * US, cpu=0)
        gap = last_gap(trace, tmp_path)
        assert waker(gap) is None
        assert gap.root is not None
        assert gap.root.cause == "io_wait"

    def test_few_waits_make_no_habit(self, tmp_path: Path) -> None:
        assert waker(last_gap(doubtful(4), tmp_path)) == ANOTHER

    def test_two_that_always_call_are_no_habit_of_either(self, tmp_path: Path) -> None:
        trace = doubtful()
        for number in range(6):
            at = number * 10 * MS + CAME_IN - 500 * US
            trace.osrt("write", at, at + US, thread=ANOTHER)
        assert waker(last_gap(trace, tmp_path)) == ANOTHER


def near_misses(ago: int, count: int = 10, *, close: int = 0) -> TraceBuilder:
    """Reads that something unseen ends; a stranger writes a while before the end of each, of some right before."""
    trace = TraceBuilder(schema="3.24.8").process().kernel(10 * US, 110 * US, launch=(US, 5 * US))
    trace.process(STRANGER[0], "/usr/bin/writer")
    for number in range(count):
        at = number * 10 * MS
        trace.osrt("read", at + BEGAN, at + ENDED).sched(at + BEGAN, False).sched(at + CAME_IN, True)
        trace.kernel(at + ENDED + 100 * US, at + ENDED + MS, launch=(at + ENDED + 50 * US, at + ENDED + 60 * US))
        called = at + CAME_IN - (20 * US if number < close else ago)
        trace.osrt("write", called, called + 5 * US, thread=STRANGER)
    return trace


class TestNeverRightBefore:
    """Who calls once a step, but not right before the end of the wait, ends nothing."""

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("ago", [BEFORE_NS + US, 500 * US, SLOW_NS])
    def test_it_is_no_habit(self, ago: int, tmp_path: Path) -> None:
        (device,) = report_of(near_misses(ago), tmp_path).devices
        assert [waker(gap) for gap in device.gaps if gap.root] == [None] * 10
        assert device.root_ledger.get("data_loading", 0) == 0

    @pytest.mark.thorough
    @pytest.mark.parametrize(("close", "found"), [(4, 0), (5, 10)])
    def test_some_calls_must_be_close(self, close: int, found: int, tmp_path: Path) -> None:
        (device,) = report_of(near_misses(500 * US, close=close), tmp_path).devices
        assert sum(waker(gap) == STRANGER for gap in device.gaps if gap.root) == found


def test_a_habit_tells_which_of_several_calls_it_was(tmp_path: Path) -> None:
    """T stood in a long queue; so many called meanwhile that none is sure, but for the one that ends such waits."""
    trace, at = repeated(600 * US, None, 30), 300 * MS
    for number in range(30):
        trace.osrt("write", number * 10 * MS + MS, number * 10 * MS + MS + US, thread=ANOTHER)
    trace.osrt("write", at + CAME_IN - 700 * US, at + CAME_IN - 699 * US, thread=ANOTHER)
    gap = last_gap(queued(trace, at + CAME_IN - MS), tmp_path)
    assert waker(gap) == STRANGER
