"""What is judged, and on what basis: each rule with a near miss."""

from __future__ import annotations

import pytest

from nsysdiag.phases.phases import find_phases
from tests.phases.jobs import DOWNLOAD, MS, UPLOAD, Job, named

STEP = ((1, 4 * MS), (2, 3 * MS), (0, 3 * MS))


def test_the_user_s_range_is_judged_as_it_is() -> None:
    job = Job().kernel(9, MS).idle(800 * MS, "startup").steps(300, *STEP)
    chosen, free = job.phases(narrowed=True), job.phases()
    assert (chosen.basis, named(chosen), chosen.judged) == ("window", ["steady"], [0])
    assert (free.basis, free.judged) == ("steady", [1])


@pytest.mark.parametrize(("closed", "basis"), [(False, "window"), (True, "steady")])
def test_what_repeats_in_a_slice_is_no_step(*, closed: bool, basis: str) -> None:
    """The layers of a model are no steps of the program."""
    found = Job().steps(17, *STEP, loop=True, closed=closed).phases()
    assert found.basis == basis


@pytest.mark.parametrize(("count", "basis"), [(2, "phase"), (4, "phase"), (5, "steady")])
def test_few_repeats_are_no_steady_state(count: int, basis: str) -> None:
    """Each step runs its kernels three times, so that names repeat."""
    parts = (1, 20 * MS), (2, 30 * MS), (1, 20 * MS), (2, 30 * MS), (1, 20 * MS), (2, 30 * MS), (0, 50 * MS)
    found = Job().steps(count, *parts, loop=True).phases()
    assert (found.basis, named(found)) == (basis, ["steady"])
    assert found.phases[0].repeats == count
    assert found.basis_of(0) == basis


@pytest.mark.parametrize(("count", "basis"), [(4, "phase"), (5, "steady")])
def test_few_repeats_of_unknown_steps(count: int, basis: str) -> None:
    found = Job().steps(count, (1, 20 * MS), (2, 30 * MS), (0, 50 * MS)).phases()
    assert (found.basis, found.phases[0].repeats) == (basis, count)


def test_one_phase_with_few_repeats_beside_another() -> None:
    """The basis of the job is that of the better phase, and each has its own."""
    job = Job().steps(4, (5, 60 * MS), (6, 60 * MS), (0, 60 * MS), loop=True).idle(900 * MS)
    found = job.steps(100, *STEP, loop=True).phases()
    assert named(found) == ["steady", "pause", "steady"]
    assert (found.basis, found.judged) == ("steady", [0, 2])
    assert [found.basis_of(at) for at in found.judged] == ["phase", "steady"]


def starting(startup_ms: int, unknown_ms: int, steps: int) -> Job:
    """A start of 8 s, of which so much has a cause, and steps of 10 ms."""
    job = Job().kernel(9, MS)
    job.idle(startup_ms * MS, "startup").idle(unknown_ms * MS, "unknown")
    return job.idle((8_000 - startup_ms - unknown_ms) * MS).steps(steps, *STEP)


@pytest.mark.parametrize(
    ("startup_ms", "unknown_ms", "steps", "basis"),
    [
        (5_000, 2_000, 60, "cold"),
        (5_000, 100, 60, "steady"),  # 59% of the window
        (3_300, 4_700, 60, "steady"),  # start-up alone takes 38%
        (3_700, 4_300, 60, "cold"),
        (5_000, 2_000, 99, "cold"),
        (5_000, 2_000, 120, "steady"),  # strong: 240 operations
    ],
)
def test_a_loop_that_is_a_small_part_of_a_start(startup_ms: int, unknown_ms: int, steps: int, basis: str) -> None:
    found = starting(startup_ms, unknown_ms, steps).phases(first_call_ns=100 * MS)
    assert (found.basis, named(found)) == (basis, ["start-up", "steady"])
    assert found.judged == ([0, 1] if basis == "cold" else [1])


@pytest.mark.parametrize(("steps", "basis"), [(90, "cold"), (98, "cold"), (99, "steady")])
def test_a_strong_phase_is_judged_however_long_the_start(steps: int, basis: str) -> None:
    """99 steps are 198 operations; the two at the border belong to them."""
    job = Job().kernel(9, MS).idle(8_000 * MS, "startup").kernel(1, MS).kernel(2, MS).steps(steps, *STEP)
    assert job.phases(first_call_ns=100 * MS).basis == basis


def with_large_kernels(large_ms: int) -> Job:
    """One-off kernels, then a loop of 60 steps with 7 ms of kernels each."""
    job = Job()
    for name in range(20, 30):
        job.kernel(name, large_ms * MS // 10).idle(large_ms * MS, "unknown")
    return job.idle(500 * MS).steps(60, *STEP)


@pytest.mark.parametrize(
    ("large_ms", "basis", "reason"),
    [
        (4_200, "cold", "what repeats takes little of the kernel time"),
        (420 * 8, "cold", "most of the work runs once"),
        (300, "steady", "work repeats"),
    ],
)
def test_a_loop_with_little_of_the_kernel_time(large_ms: int, basis: str, reason: str) -> None:
    """420 ms of kernels in the loop: under a tenth; over a tenth, but under half of the busy time; over half. The GPU
    works for a tenth of the time."""
    found = with_large_kernels(large_ms).phases(first_call_ns=100 * MS)
    assert (found.basis, found.reason) == (basis, reason)


def test_a_long_loop_with_little_of_the_kernel_time_is_judged() -> None:
    """A large kernel once, then 400 steps of 10 ms that wait for their input: no start, though the GPU works for 9%."""
    job = Job().kernel(9, 250 * MS).idle(500 * MS)
    for _ in range(80):
        job.kernel(1, 2 * MS).idle(48 * MS)
    assert job.phases(first_call_ns=0).basis == "steady"


def once(copy_ms: int, kernel_ms: int, idle_ms: int) -> Job:
    """Upload, four different kernels, download; idle time between them."""
    job = Job().copy(UPLOAD, copy_ms * MS).idle(idle_ms * MS)
    for name in range(1, 5):
        job.kernel(name, kernel_ms * MS)
    return job.idle(idle_ms * MS).copy(DOWNLOAD, copy_ms * MS)


def test_upload_kernels_download_is_no_start_up() -> None:
    found = once(50, 100, 10).phases(first_call_ns=0)
    assert (found.basis, named(found), found.judged) == ("window", ["steady"], [0])


def test_the_same_mostly_idle_is_one() -> None:
    found = once(50, 100, 300).phases(first_call_ns=0)
    assert (found.basis, named(found)) == ("cold", ["start-up"])


@pytest.mark.parametrize(("first_call_ms", "basis"), [(-350, "window"), (-400, "cold"), (-2_400, "cold")])
def test_the_same_behind_a_long_start_is_one(first_call_ms: int, basis: str) -> None:
    """500 ms of work in 970 ms, in 1,020 ms, and 17% of 3 s."""
    assert once(50, 100, 10).phases(first_call_ns=first_call_ms * MS).basis == basis


@pytest.mark.parametrize(
    ("start_ms", "count", "step_us", "kernels", "basis"),
    [
        (150, 5, 62, 2, "cold"),
        (66, 90, 22, 3, "cold"),  # strong: 270 operations
        (66, 90, 150, 3, "cold"),
        (66, 90, 200, 3, "steady"),  # 18 ms are over a fifth of both
        (0, 90, 22, 3, "steady"),  # nothing before it
        (60_000, 100, 20_000, 3, "steady"),  # strong, and two seconds long
        (5_000, 9, 20_000, 3, "cold"),  # 180 ms of few steps
        (500, 9, 20_000, 3, "steady"),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_short_loops_after_a_start(
    start_ms: int, count: int, step_us: int, kernels: int, basis: str, *, before: bool
) -> None:
    """The rule is the same whether the start is before the first operation or behind it."""
    job = Job(now=100 * MS)
    if start_ms and before:
        job.idle(start_ms * MS)
    elif start_ms:
        job.kernel(99, 1_000).idle(start_ms * MS, "startup")
    parts = [(name, step_us * 1_000 // (2 * kernels)) for name in range(1, kernels + 1)]
    job.steps(count, *parts, (0, step_us * 500))
    assert job.phases(first_call_ns=100 * MS).basis == basis


def test_a_pause_is_no_start() -> None:
    """Two short loops, and a second of sleep between them."""
    job = Job().steps(20, (1, MS), (0, MS)).idle(1_000 * MS).steps(20, (1, MS), (0, MS))
    assert job.phases(first_call_ns=98 * MS).basis == "steady"


def test_a_short_loop_in_a_busy_run_is_not_what_is_judged() -> None:
    """A large kernel, then 300 small ones in 40 ms, which a start of 200 ms precedes."""
    job = Job(now=300 * MS).kernel(9, 800 * MS).steps(100, (1, 100_000), (2, 100_000), (3, 100_000), (0, 100_000))
    found = job.phases(first_call_ns=100 * MS)
    assert (found.basis, found.reason) == ("window", "what repeats is short")


@pytest.mark.parametrize("other_ms", [0, 250])
def test_two_devices_in_turn_work_for_the_time_of_both(other_ms: int) -> None:
    """Each works for under half of the time since the first call, and together they work for more."""
    one, other = once(50, 100, 10), once(50, 100, 10)
    other.rows = [(start + other_ms * MS, end + other_ms * MS, *rest) for start, end, *rest in other.rows]  # type: ignore[misc]
    found = find_phases([one.signal(0), other.signal(1)], -500 * MS, narrowed=False)
    assert found.basis == ("window" if other_ms else "cold")


def test_weak_repeats_in_a_busy_window() -> None:
    """Steady, but under half of the busy time and not strong: most of the work is done once."""
    job = Job().copy(UPLOAD, 1_000 * MS)
    job.steps(60, *STEP)
    weak = job.copy(DOWNLOAD, 1_000 * MS).phases(first_call_ns=0)
    assert (weak.basis, named(weak), weak.judged) == ("window", ["steady"], [0])
    job = Job().copy(UPLOAD, 200 * MS)
    job.steps(60, *STEP)
    assert job.copy(DOWNLOAD, 200 * MS).phases(first_call_ns=0).basis == "steady"


@pytest.mark.parametrize(("idle_ms", "basis"), [(2_600, "steady"), (2_900, "cold")])
def test_a_part_that_hardly_works_is_not_steady(idle_ms: int, basis: str) -> None:
    """Steps with 55 µs of work, a little more and a little less than 2%."""
    job = Job()
    for _ in range(40):
        job.kernel(1, 55_000).idle(idle_ms * 1_000)
    assert job.phases(first_call_ns=100 * MS).basis == basis


@pytest.mark.parametrize(("startup_ms", "basis"), [(14, "steady"), (17, "cold")])
def test_a_part_that_loads_code_all_the_time_is_not_steady(startup_ms: int, basis: str) -> None:
    """Steps of 100 ms, of which so much is start-up causes."""
    job = Job()
    for _ in range(40):
        job.kernel(1, 20 * MS).idle(startup_ms * MS, "startup").idle((80 - startup_ms) * MS)
    assert job.phases(first_call_ns=100 * MS).basis == basis


@pytest.mark.parametrize(("copy_ms", "basis"), [(240, "window"), (320, "phase")])
def test_copies_count_where_they_take_three_times_as_long_as_kernels(copy_ms: int, basis: str) -> None:
    """Six steps with three kernels in turn, so that a kernel runs twice, and copies that repeat."""
    job = Job()
    for name in (1, 2, 3, 1, 2, 3):
        job.copy(UPLOAD, copy_ms * MS // 2).kernel(name, 100 * MS).copy(DOWNLOAD, copy_ms * MS // 2)
    assert job.phases(first_call_ns=0).basis == basis


def test_a_strong_phase_is_judged_however_short() -> None:
    """5% of the steady time, with 240 operations; and with 180."""
    judged = {}
    for count in (60, 45):
        step_ns = 600 * MS // count
        job = Job().steps(1_000, *STEP).idle(900 * MS)
        parts = [(name, step_ns // 8) for name in (3, 4, 5, 6)]
        judged[count] = job.steps(count, *parts, (0, step_ns // 2)).phases().judged
    assert judged == {60: [0, 2], 45: [0]}


def test_short_phases_that_repeat_are_listed_in_a_cold_trace() -> None:
    """Bursts between start-up causes take turns, and are no steps: together they are a start."""
    job = Job().kernel(9, MS)
    for _ in range(4):
        job.idle(500 * MS, "startup").steps(12, (1, 4 * MS), (0, MS))
    found = job.phases(first_call_ns=100 * MS)
    assert found.basis == "cold"
    assert named(found).count("steady") == 4
