"""When it began, on columns of windows written out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from nsysdiag.host.facts import ChangePoint, HostWindow
from nsysdiag.host.report import change_points

SECOND = 1_000_000_000
QUIET, LOUD = [20, 30, 20, 20, 30, 20], [900, 800, 900, 900, 700, 900]


def windows(switches: Sequence[int | None]) -> list[HostWindow]:
    """One a second, all alike but for the context switches."""
    return [
        HostWindow(
            start_ns=SECOND * at,
            end_ns=SECOND * (at + 1),
            switches=count,
            sync_calls=0,
            sync_p50_ns=None,
            sync_p99_ns=None,
            sync_total_ns=0,
            launches_per_second=1_000.0,
            kernels_per_second=1_000.0,
            busy_share=0.9,
            off_cpu_share=0.1,
            preempted_share=0.0,
            crowded_share=0.0,
            sync_late_p50_ns=None,
        )
        for at, count in enumerate(switches)
    ]


def test_from_the_seventh_window_on() -> None:
    """
    a second   20 30 20 20 30 20 | 900 800 900 900 700 900
    """
    (found,) = change_points(windows(QUIET + LOUD))
    assert found == ChangePoint(metric="switches_per_second", window=6, start_ns=6 * SECOND, before=20.0, after=900.0)


@pytest.mark.parametrize(
    "switches",
    [
        QUIET + QUIET,
        LOUD + LOUD,
        [*QUIET, 900, *QUIET],
        [*QUIET, 900, 900, 900, *QUIET],
        [*QUIET, 40, 50, 40, 50, 60, 40],
        [2, 3, 2, 2, 3, 2, 20, 30, 20, 20, 30, 20],
        [*LOUD, 1_500, 1_400, 1_500, 1_500, 1_400, 1_500],
        [20, 900] * 6,
        QUIET + QUIET + [900, 900],
        LOUD + QUIET,
        [20, 20, 20, 20, *LOUD * 5],
        [None] * 6 + LOUD,
        [],
        [20],
    ],
    ids=[
        *("steady", "steady and loud", "one spike", "a spike of three windows", "more, but not by 100 a second"),
        *(
            "twenty more a second are nothing",
            "more, but not twice",
            "to and fro",
            "the last two windows alone",
            "it gets better",
        ),
        *("warm-up: too early", "unknown before", "nothing", "one window"),
    ],
)
def test_no_beginning(switches: list[int | None]) -> None:
    assert change_points(windows(switches)) == []


def test_one_window_may_stray_on_either_side() -> None:
    (found,) = change_points(windows([20, 900, 20, 20, 30, 20, *LOUD, 20, *LOUD]))
    assert found.window == 6


def test_a_rate_that_falls() -> None:
    rows = windows(QUIET + QUIET)
    fewer = [msgspec.structs.replace(row, launches_per_second=400.0) for row in rows[6:]]
    (found,) = change_points(rows[:6] + fewer)
    assert (found.metric, found.window, found.before, found.after) == ("launches_per_second", 6, 1_000.0, 400.0)
    more = [msgspec.structs.replace(row, launches_per_second=4_000.0) for row in rows[6:]]
    assert change_points(rows[:6] + more) == []


@pytest.mark.parametrize(("calls", "count"), [(5, 1), (4, 0)])
def test_few_synchronizations_tell_nothing(calls: int, count: int) -> None:
    rows = [
        msgspec.structs.replace(row, sync_calls=calls, sync_p50_ns=10_000 if at < 6 else 90_000)
        for at, row in enumerate(windows(QUIET + QUIET))
    ]
    assert [found.metric for found in change_points(rows)] == ["sync_p50_ns"] * count
