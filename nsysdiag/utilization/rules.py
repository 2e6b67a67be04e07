"""The one sentence about utilization: small rules in order, the first that holds."""

from __future__ import annotations

from msgspec import Struct, field

from nsysdiag.config.settings import Thresholds, UtilizationThresholds
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.units import format_ns, format_share
from nsysdiag.utilization.dashboard import Dashboard

ESTIMATE, MEASURED = "estimate", "gpu-metrics"


class UtilizationInput(Struct, frozen=True):
    """The input of the rules. `active` is SM activity over the window, `at_most` its upper bound if the estimate leaves
    out kernels; both None if unknown. `source` is their source."""

    split: WindowSplit
    dashboard: Dashboard | None
    active: float | None = None
    at_most: float | None = None
    source: str | None = None
    settings: UtilizationThresholds = field(default_factory=UtilizationThresholds)
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def utilization(self) -> float:
        """The share of the window in which a kernel ran, as the report has it; only where there is a window."""
        return round(self.split.kernel_ns / self.split.window_ns, 6)

    @property
    def shown(self) -> str:
        """The same as text."""
        return format_share(self.split.kernel_ns, self.split.window_ns)

    def share(self, ns: int) -> str:
        """Some of the window as text."""
        return format_share(ns, self.split.window_ns)


def _sms(given: UtilizationInput, active: float, least: str = "") -> str:
    estimated = "an estimated " if given.source == ESTIMATE else ""
    return f"{estimated}{least}{format_share(active, 1)} of the SMs"


def headline(given: UtilizationInput) -> str:
    """What a dashboard shows, and the truth that matters most: the first that holds of the rules, in this order."""
    for rule in (_nothing, _copies, _communication, _few_sms, _polled, _idle, _known):
        found = rule(given)
        if found is not None:
            return found
    return f"A dashboard would show {given.shown}; this trace cannot tell how many SMs had work."


def _nothing(given: UtilizationInput) -> str | None:
    return None if given.split.window_ns else "No GPU work in this window."


def _copies(given: UtilizationInput) -> str | None:
    split = given.split
    if split.exposed_copy_ns < split.idle_ns or split.exposed_copy_ns < given.thresholds.copies * split.window_ns:
        return None
    copies = given.share(split.exposed_copy_ns)
    return f"nvidia-smi would show {given.shown}; copies alone keep the GPU busy {copies} of the time."


def _communication(given: UtilizationInput) -> str | None:
    split = given.split
    if split.exposed_comm_ns < given.thresholds.communication * split.window_ns:
        return None
    waits, computes = given.share(split.exposed_comm_ns), given.share(split.compute_ns)
    return (
        f"{given.shown} on a dashboard, but the GPU computes {computes} of the time: {waits} is exposed communication."
    )


def _few_sms(given: UtilizationInput) -> str | None:
    """The most that may have been counts: where part of the kernels is not known, that may have filled the chip."""
    limits = given.settings
    if given.at_most is None or given.utilization < limits.hollow_utilization:
        return None
    if given.at_most >= limits.hollow_activity:
        return None
    return f"{given.shown} on a dashboard, but {_sms(given, given.at_most)} have work."


def _polled(given: UtilizationInput) -> str | None:
    if given.dashboard is None:
        return None
    polled = given.dashboard.period_share
    limits = given.settings
    if polled - given.utilization < limits.poll_difference or polled < limits.poll_factor * given.utilization:
        return None
    every = format_ns(given.dashboard.by_period.period_ns)
    return f"{format_share(polled, 1)} by polling every {every}, {given.shown} of the time."


def _idle(given: UtilizationInput) -> str | None:
    idle = given.split.idle_ns
    if idle < given.thresholds.busy * given.split.window_ns:
        return None
    return f"A dashboard would show {given.shown}; the GPU is idle {given.share(idle)} of the time."


def _known(given: UtilizationInput) -> str | None:
    if given.active is None or given.at_most is None:
        return None
    least = f"{format_share(given.active, 1)} to " if given.at_most != given.active else ""
    return f"A dashboard would show {given.shown}, with work on {_sms(given, given.at_most, least)} on average."
