"""What to capture where a trace holds only the start of a program."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.diagnosis.focus import Focus, Scope
from nsysdiag.diagnosis.sentences import MORE_STEPS, Said, headline, rest_of_capture
from nsysdiag.phases.facts import Basis, PhaseDevice
from nsysdiag.phases.phases import JobPhases
from nsysdiag.phases.steps import FoundPhase
from tests.builder import TraceBuilder
from tests.phases.jobs import MS, Job

SECOND = 1_000 * MS
ALL = Focus(Intervals.empty(), [0], None)


def scope(started: int | None, end: int, basis: Basis = "cold") -> Scope:
    return Scope.of(JobPhases(0, end, [], basis, "", [], started), ALL)


@pytest.mark.parametrize(
    ("started", "end", "later"),
    [
        (4_300 * MS, 30 * SECOND, 5),
        (4 * SECOND, 5 * SECOND, 4),
        (4_300 * MS, 5_500 * MS, None),  # half a second of work behind it
        (4_300 * MS, 4_400 * MS, None),  # the program ends in that second
        (None, 30 * SECOND, None),  # the trace shows no start-up cause
        (-2 * SECOND, 30 * SECOND, None),  # a clock that does not begin with the program
    ],
)
def test_a_later_time_is_one_at_which_work_was_seen(started: int | None, end: int, later: int | None) -> None:
    assert scope(started, end).later == later


def test_only_a_start_is_left_out() -> None:
    assert scope(4 * SECOND, 30 * SECOND, "window").later is None


def said(work_ns: int, later: int | None = None) -> str:
    return headline(Said(Scope("cold", later=later), SECOND, {}, work_ns=work_ns), "startup", 0.9, None, None)


def test_what_the_headline_says() -> None:
    assert "nsys profile --delay=5 --duration=10." in said(400 * MS, later=5)
    assert "--delay" not in said(400 * MS)
    assert said(400 * MS).endswith("400 ms of GPU work. Start-up takes 90.0% of the 1.00 s judged. " + MORE_STEPS)
    assert "no steady state: 400 µs of GPU work." in said(MS * 2 // 5)
    assert said(MS * 2 // 5).endswith("There is nothing to tune on the GPU here. " + MORE_STEPS)


def test_the_last_start_up_cause_of_a_cold_start() -> None:
    job = Job().kernel(1, MS).idle(900 * MS, "startup").kernel(2, MS).idle(300 * MS, "startup").kernel(3, MS)
    job.idle(500 * MS).kernel(4, MS)
    found = job.phases(first_call_ns=0)
    assert found.basis == "cold"
    assert found.started == 100 * MS + 1_202 * MS


class TestRestOfTheCapture:
    """The judged phase is a small part of what was captured: what the rest holds."""

    JOB = JobPhases(
        100 * MS,
        1_000 * MS,
        [
            FoundPhase("start-up", 0, 400 * MS),
            FoundPhase("steady", 400 * MS, 500 * MS),
            FoundPhase("pause", 500 * MS, 990 * MS),
            FoundPhase("steady", 990 * MS, 1_000 * MS),
        ],
        "steady",
        "",
        [1],
    )

    def rest(self, focus: Focus, end: int, begin: int = 0) -> str:
        return rest_of_capture(Scope.of(self.JOB, focus), (begin, end), 100 * MS)

    def test_what_is_long_is_named_the_longest_first(self) -> None:
        focus = Focus(Intervals.empty(), [1], 1)
        assert self.rest(focus, 1_000 * MS) == "; the rest is pauses (490 ms) and start-up (400 ms)"
        whole = "; the rest is time after the last GPU work (1.00 s), pauses (490 ms) and start-up (400 ms)"
        assert self.rest(focus, 2_000 * MS) == whole
        assert self.rest(focus, 100 * SECOND) == "; the rest is time after the last GPU work (99.0 s)"

    def test_a_pause_in_which_the_device_works_is_none(self) -> None:
        work = {"exposed_comm_ns": 0, "exposed_copy_ns": 0, "outside_ns": 0, "ledger": {}, "account": {}}
        phases = [PhaseDevice(key="gpu0", compute_ns=ns, idle_ns=2, **work) for ns in (0, 3, 3, 3)]
        scope = Scope.of(self.JOB, Focus(Intervals.empty(), [1], 1), devices=[phases])
        told = rest_of_capture(scope, (0, 1_000 * MS), 100 * MS)
        assert told == "; the rest is other work (490 ms) and start-up (400 ms)"

    def test_what_is_before_the_first_call(self) -> None:
        """The run begins two seconds before the first CUDA call."""
        rest = self.rest(Focus(Intervals.empty(), [1], 1), 1_000 * MS, -2_000 * MS)
        assert rest.startswith("; the rest is time before the first CUDA call (2.00 s), pauses (490 ms)")

    def test_nothing_but_the_judged_phases_has_gpu_work(self) -> None:
        everything = Focus(Intervals.empty(), [0, 1, 2, 3], None)
        assert self.rest(everything, 100 * SECOND) == "; the rest is time after the last GPU work (99.0 s)"
        assert self.rest(everything, 1_000 * MS) == ""

    def test_pages_that_move_after_the_last_launched_work(self) -> None:
        """2 ms of 5 ms are before the end of the last phase."""
        paging = Intervals.of([(0, MS), (998 * MS, 1_003 * MS)])
        everything = Focus(Intervals.empty(), [0, 1, 2, 3], None)
        rest = rest_of_capture(Scope.of(self.JOB, everything, paging), (0, 2 * SECOND), 0)
        assert rest.endswith("time after the last GPU work (1.00 s; pages of unified memory move for 3.00 ms of it)")

    def test_a_slice_holds_nothing_of_the_rest(self) -> None:
        everything, one = Focus(Intervals.empty(), [0, 1, 2, 3], None), Focus(Intervals.empty(), [1], 1)
        rest = rest_of_capture(Scope.of(self.JOB, everything), (0, 100 * SECOND), 0, sliced=True)
        assert rest == ""
        rest = rest_of_capture(Scope.of(self.JOB, one), (0, 100 * SECOND), 0, sliced=True)
        assert rest == "; the rest is time that is not in the trace (99.0 s)"

    def test_it_is_unknown_of_several_traces(self) -> None:
        assert rest_of_capture(Scope("steady"), (0, 100 * SECOND), 0) == ""

    def test_a_chosen_time(self) -> None:
        chosen = Job().steps(6, (1, MS)).phases(narrowed=True)
        scope = Scope.of(chosen, Focus(Intervals.empty(), [0], 0))
        assert rest_of_capture(scope, (0, SECOND), 6 * MS) == ": the chosen time, which leaves out 994 ms"


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(), "captured; the rest is time after the last GPU work (100 s). Kernels"),
        (Settings(start_ns=10 * MS), "captured: the chosen time, which leaves out 100 s. Kernels"),
        (Settings(device="gpu0"), "captured; the rest is time after the last GPU work (100 s). Kernels"),
    ],
)
def test_a_headline_says_what_else_was_captured(settings: Settings, said: str, tmp_path: Path) -> None:
    trace = TraceBuilder(duration=100 * SECOND)
    for at in range(30):
        trace.kernel(at * MS, (at + 1) * MS - 1_000)
    report = nsysdiag.analyze(trace.write(tmp_path / "trace.sqlite"), settings)
    assert report.diagnosis is not None
    assert said in report.diagnosis.headline


def _headline(trace: TraceBuilder, tmp_path: Path) -> str:
    report = nsysdiag.analyze(trace.write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    assert report.diagnosis is not None
    return report.diagnosis.headline


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("pause_ms", "said"), [(700, True), (150, True), (20, False)])
def test_a_pause_is_in_the_headline(pause_ms: int, tmp_path: Path, *, said: bool) -> None:
    """Two loops of 150 ms, and time between them: judged is one of them, or both as one where the pause is short."""
    trace = TraceBuilder(duration=300 * MS + pause_ms * MS)
    for at in range(300):
        start = at * MS + (pause_ms * MS if at >= 150 else 0)
        trace.kernel(start + 1, start + MS - 1_000, launch=(max(start - 9_000, 0), max(start - 4_000, 1)))
    assert (f"pauses ({pause_ms} ms)" in _headline(trace, tmp_path)) is said


def test_what_the_host_does_in_pauses_is_in_the_headline(tmp_path: Path) -> None:
    """Half of the time was `pauses`, as if the program did nothing then."""
    trace = TraceBuilder(duration=600 * MS)
    for at in range(300):
        start = (at + 150 * (at // 100)) * MS
        trace.kernel(start + 1, start + MS - 1_000, launch=(max(start - 9_000, 0), max(start - 4_000, 1)))
    for at in (100, 350):
        trace.osrt("fsync", at * MS, (at + 149) * MS)
    assert "pauses (300 ms: fsync 298 ms)" in _headline(trace, tmp_path)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("before_ms", [15_000, 400, 20])
def test_host_code_before_the_first_call_is_in_the_headline(before_ms: int, tmp_path: Path) -> None:
    """The run begins with the capture, long before the first CUDA call."""
    trace = TraceBuilder().osrt("read", 0, before_ms * MS)
    begin = before_ms * MS
    for at in range(400):
        start = begin + at * MS
        trace.kernel(start + 10_000, start + MS - 1_000, launch=(start, start + 5_000))
    found = _headline(trace, tmp_path)
    assert ("time before the first" in found) is (before_ms > 100)
    assert (f"of the {(before_ms + 400) / 1000:.1f} s captured" in found) is (before_ms == 15_000)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (9, "the rest is time after the last GPU work (100 s)"),
        (10, "The trace is a slice: 39.0 ms (<0.1%) of a session of 100 s."),
    ],
)
def test_a_slice_begins_in_the_midst_of_queued_work(cut: int, said: str, tmp_path: Path) -> None:
    trace = TraceBuilder(duration=100 * SECOND)
    for at in range(1, 40):
        launch = (at * MS - 9_000, at * MS - 4_000) if at > cut else None
        trace.kernel(at * MS, (at + 1) * MS - 1_000, launch=launch, correlation=at)
    report = nsysdiag.analyze(trace.write(tmp_path / "trace.sqlite"))
    assert report.diagnosis is not None
    assert said in report.diagnosis.headline


def test_a_part_of_one_step_is_called_so() -> None:
    job = Job().steps(20, (1, 4 * MS), (0, MS), loop=True, closed=False)
    found = job.phases()
    scope = Scope.of(found, Focus(Intervals.empty(), [0], 0))
    assert scope.inside_step
    said = Said(scope, 100 * MS, {})
    assert headline(said, "kernels", 0.8, None, None) == "Kernels take 80.0% of the 100 ms judged, a part of one step."
