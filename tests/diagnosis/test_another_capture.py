"""What to capture where a trace holds only the start of a program."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.diagnosis.focus import Focus, Scope
from nsysdiag.diagnosis.sentences import MORE_STEPS, Said, headline, rest_of_capture
from nsysdiag.phases.facts import Basis
from nsysdiag.phases.phases import FoundPhase, JobPhases
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
    return headline(Said("cold", None, SECOND, {}, work_ns=work_ns, later=later), "startup", 0.9, None, None)


def test_what_the_headline_says() -> None:
    assert "nsys profile --delay=5 --duration=10." in said(400 * MS, later=5)
    assert "--delay" not in said(400 * MS)
    assert said(400 * MS).endswith("400 ms of GPU work. CUDA start-up takes 90.0% of the 1.00 s judged. " + MORE_STEPS)
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

    def rest(self, focus: Focus, duration: int | None) -> str:
        return rest_of_capture(Scope.of(self.JOB, focus), duration)

    def test_what_is_long_is_named_the_longest_first(self) -> None:
        focus = Focus(Intervals.empty(), [1], 1)
        assert self.rest(focus, 1_000 * MS) == "; the rest is pauses (490 ms) and start-up (400 ms)"
        whole = "; the rest is time without GPU work (1.00 s), pauses (490 ms) and start-up (400 ms)"
        assert self.rest(focus, 2_000 * MS) == whole
        assert self.rest(focus, 100 * SECOND) == "; the rest is time without GPU work (99.0 s)"

    def test_nothing_but_the_judged_phases_has_gpu_work(self) -> None:
        everything = Focus(Intervals.empty(), [0, 1, 2, 3], None)
        assert self.rest(everything, 100 * SECOND) == "; no GPU work was recorded in the rest"

    def test_a_slice_holds_nothing_of_the_rest(self) -> None:
        everything, one = Focus(Intervals.empty(), [0, 1, 2, 3], None), Focus(Intervals.empty(), [1], 1)
        rest = rest_of_capture(Scope.of(self.JOB, everything), 100 * SECOND, sliced=True)
        assert rest == ""
        rest = rest_of_capture(Scope.of(self.JOB, one), 100 * SECOND, sliced=True)
        assert rest == "; the rest is time that is not in the trace (99.0 s)"

    def test_it_is_unknown_without_the_length_of_the_capture(self) -> None:
        known = "; the rest is pauses (490 ms) and start-up (400 ms)"
        assert self.rest(Focus(Intervals.empty(), [1], 1), None) == known
        assert rest_of_capture(Scope("steady"), 100 * SECOND) == ""  # of several traces

    def test_a_chosen_time(self) -> None:
        chosen = Job().steps(6, (1, MS)).phases(narrowed=True)
        scope = Scope.of(chosen, Focus(Intervals.empty(), [0], 0))
        assert rest_of_capture(scope, SECOND) == ": the chosen time"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(), "captured; no GPU work was recorded in the rest. Kernels"),
        (Settings(start_ns=10 * MS), "captured: the chosen time. Kernels"),
        (Settings(device="gpu0"), "captured. Kernels"),
    ],
)
def test_a_headline_says_what_else_was_captured(settings: Settings, said: str, tmp_path: Path) -> None:
    trace = TraceBuilder(duration=100 * SECOND)
    for at in range(30):
        trace.kernel(at * MS, (at + 1) * MS - 1_000)
    report = nsysdiag.analyze(trace.write(tmp_path / "trace.sqlite"), settings)
    assert report.diagnosis is not None
    assert said in report.diagnosis.headline


@pytest.mark.parametrize(
    ("cut", "said"),
    [(9, "no GPU work was recorded in the rest"), (10, "The trace is a slice: 39.0 ms (<0.1%) of a session of 100 s.")],
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
    said = Said(scope.basis, scope.phase, 100 * MS, {}, inside_step=scope.inside_step)
    assert headline(said, "kernels", 0.8, None, None) == "Kernels take 80.0% of the 100 ms judged, a part of one step."
