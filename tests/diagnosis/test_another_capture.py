"""What to capture where a trace holds only the start of a program."""

from __future__ import annotations

import pytest

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.diagnosis.focus import Focus, Scope
from nsysdiag.diagnosis.sentences import Said, headline
from nsysdiag.phases.facts import Basis
from nsysdiag.phases.phases import JobPhases
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
    assert said(400 * MS).endswith("To see more, capture a run with more steps.")
    assert "no steady state: 400 µs of GPU work." in said(MS * 2 // 5)
    assert said(MS * 2 // 5).endswith("There is nothing to tune on the GPU here: capture a run with more steps.")


def test_the_last_start_up_cause_of_a_cold_start() -> None:
    job = Job().kernel(1, MS).idle(900 * MS, "startup").kernel(2, MS).idle(300 * MS, "startup").kernel(3, MS)
    job.idle(500 * MS).kernel(4, MS)
    found = job.phases(first_call_ns=0)
    assert found.basis == "cold"
    assert found.started == 100 * MS + 1_202 * MS
