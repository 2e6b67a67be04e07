"""The rules for the one sentence about utilization, at their thresholds and in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import Settings, Thresholds
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.utilization.facts import SmEstimate, UtilizationSeries
from nsysdiag.utilization.utilization import Dashboard, UtilizationInput, _efficiency, _input, headline

if TYPE_CHECKING:
    from collections.abc import Callable

MS = 1_000_000
NONE = Intervals.empty()


def split(compute: int, *, comm: int = 0, copies: int = 0, idle: int = 0) -> WindowSplit:
    """Shares of a window in thousandths that add up to it."""
    return WindowSplit(
        window=Intervals.of([(0, compute + comm + copies + idle)]),
        compute_ns=compute,
        exposed_comm_ns=comm,
        exposed_copy_ns=copies,
        overlapped_comm_ns=0,
        kernel_ns=compute + comm,
        kernels=NONE,
        busy=NONE,
        parts=(NONE, NONE, NONE),
    )


def shown(period_share: float) -> Dashboard:
    series = UtilizationSeries(
        period_ns=50 * MS, periods=1, lowest=0.0, highest=1.0, start_ns=0, step_ns=50 * MS, values=[period_share]
    )
    return Dashboard(series, series, period_share, [])


def given(
    parts: WindowSplit, active: float | None = None, *, source: str = "estimate", polled: float | None = None
) -> UtilizationInput:
    dashboard = None if polled is None else shown(polled)
    return UtilizationInput(parts, dashboard, active, active, None if active is None else source)


# ---- the sentence ------------------------------------------------------------------------------------------------

RULES: dict[str, tuple[UtilizationInput, str]] = {
    "nothing": (given(split(0)), "No GPU work in this window."),
    "copies": (
        # Copy-bound, communication-bound, hollow while it runs and badly polled: the copies matter most.
        given(split(10, comm=340, copies=400, idle=250), 0.01, polled=1.0),
        "nvidia-smi would show 35.0%; copies alone keep the GPU busy 40.0% of the time.",
    ),
    "communication": (
        given(split(500, comm=500), 0.1, polled=1.0),
        "100.0% on a dashboard, but the GPU computes 50.0% of the time: 50.0% is exposed communication.",
    ),
    "hollow": (
        given(split(1000), 0.008, polled=1.0),
        "100.0% on a dashboard, but an estimated 0.8% of the SMs have work.",
    ),
    "few SMs, and idle": (
        given(split(600, idle=400), 0.06, polled=1.0),
        "In this window a dashboard would show 60.0%; the GPU is idle 40.0% of the time.",
    ),
    "polled": (given(split(30, idle=970), 0.03, polled=0.97), "97.0% by polling every 50.0 ms, 3.0% of the time."),
    "idle": (
        given(split(550, idle=450), 0.5, polled=0.8),
        "In this window a dashboard would show 55.0%; the GPU is idle 45.0% of the time.",
    ),
    "known": (
        given(split(980, idle=20), 0.9, polled=1.0),
        "In this window a dashboard would show 98.0%, with work on an estimated 90.0% of the SMs on average.",
    ),
    "measured": (
        given(split(980, idle=20), 0.9, source="gpu-metrics", polled=1.0),
        "In this window a dashboard would show 98.0%, with work on 90.0% of the SMs on average.",
    ),
    "unknown": (
        given(split(980, idle=20), polled=1.0),
        "In this window a dashboard would show 98.0%; this trace cannot tell how many SMs had work.",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_what_is_said(rule: str) -> None:
    inputs, sentence = RULES[rule]
    assert headline(inputs) == sentence


def is_about(word: str) -> Callable[[UtilizationInput], bool]:
    return lambda inputs: word in headline(inputs)


@pytest.mark.parametrize(
    ("about", "at", "beside"),
    [
        ("copies alone", split(800, copies=100, idle=100), split(801, copies=99, idle=100)),
        ("copies alone", split(700, copies=150, idle=150), split(699, copies=150, idle=151)),
        ("communication", split(600, comm=300), split(601, comm=299)),
        ("is idle", split(950, idle=50), split(951, idle=49)),
    ],
)
def test_rules_hold_from_their_thresholds_on(about: str, at: WindowSplit, beside: WindowSplit) -> None:
    assert is_about(about)(given(at))
    assert not is_about(about)(given(beside))


@pytest.mark.parametrize(
    ("busy", "active", "at_most", "said"),
    [
        (950, 0.29, 0.299999, True),
        (800, 0.29, 0.299999, True),
        (799, 0.29, 0.299999, False),
        (950, 0.29, 0.3, False),  # what nobody knows may have filled the chip
        (950, 0.3, 0.3, False),
        (950, None, None, False),
    ],
)
def test_few_sms_from_their_thresholds_on(busy: int, active: float | None, at_most: float | None, said: bool) -> None:
    inputs = structs.replace(given(split(busy, idle=1000 - busy), active), at_most=at_most)
    assert is_about("but an estimated 30.0% of the SMs")(inputs) == said


@pytest.mark.parametrize(
    ("busy", "polled", "said"),
    [
        (200, 0.4, True),  # twice as much and 20% above
        (200, 0.399, False),
        (199, 0.398, False),  # twice as much, not 20% above
        (201, 0.401, False),  # 20% above, not twice as much
        (0, 0.2, True),
    ],
)
def test_a_poll_misleads_from_its_thresholds_on(busy: int, polled: float, said: bool) -> None:
    assert is_about("by polling")(given(split(busy, idle=1000 - busy), polled=polled)) == said


def test_thresholds_are_settings() -> None:
    parts = split(900, copies=60, idle=40)
    assert not is_about("copies alone")(given(parts))
    assert is_about("copies alone")(structs.replace(given(parts), thresholds=Thresholds(copies=0.05)))


# ---- measured beside estimated -----------------------------------------------------------------------------------


def estimated(active: float | None) -> SmEstimate:
    return SmEstimate(
        sm_active_share=active,
        resident_share=active,
        sm_active_running=active,
        resident_running=active,
        sm_active_at_most=active,
        covered_share=1.0,
    )


def test_what_was_measured_goes_before_the_estimate() -> None:
    parts = split(500, idle=500)
    for guess in (0.5, None):
        inputs = _input(parts, None, estimated(guess), 0.1, Settings())
        assert (inputs.active, inputs.at_most, inputs.source) == (0.1, 0.1, "gpu-metrics")
    assert _efficiency(0.1, parts) == 0.2
    assert _efficiency(0.1, split(0, idle=1000)) is None
    inputs = _input(parts, None, estimated(None), None, Settings())
    assert (inputs.active, inputs.source) == (None, None)
