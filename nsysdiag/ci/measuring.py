"""The value of a measure on a device of a report, or what evidence for it is missing.

A budget on something that a trace does not tell is an error, since neither kept nor broken would be true.
"""

from __future__ import annotations

from nsysdiag.causes import CAUSES
from nsysdiag.ci.names import GPU_METRICS, Measure
from nsysdiag.comparison.side import IDLE, LENGTH, by_iterations
from nsysdiag.config.settings import disabled_causes
from nsysdiag.fields import ZERO_IF_NONE, Needs, WhyNone, fields_of, markers_of
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report
from nsysdiag.time.facts import STATES
from nsysdiag.trace.capabilities import KINDS

BY_OPTION = ("cuda-api", "os-runtime", "scheduling", "cpu-samples", "gpu-context-switch")
"""Evidence that is missing where it was not captured. The tables of other kinds are missing where nothing happened."""
EITHER = {"scheduling", "cpu-samples"}
"""Each of the two shows that a thread ran."""

_COLUMNS = {
    "window_ns": LENGTH,
    "compute_ns": "compute",
    "exposed_comm_ns": "exposed_comm",
    "exposed_copy_ns": "exposed_copy",
    "idle_ns": IDLE,
}
"""Columns of the table of steady iterations, without those of causes and of operations."""


class UnmeasurableError(Exception):
    """This device, or this report, does not tell. The text says why, and what would."""


def value_of(report: Report, device: DeviceReport, measure: Measure, *, per_iteration: bool) -> float:
    """The value in the unit of the measure, per iteration if requested. Raises UnmeasurableError."""
    require_evidence(report, measure)
    if measure.of_judged_time:
        return _judged_share(report, device, measure.path[1])
    if per_iteration:
        return _per_iteration(report, device, measure)
    value = _field(report, device, measure)
    if not measure.of_window:
        return value
    if not device.window_ns:
        raise UnmeasurableError("nothing ran on this GPU")
    return value / device.window_ns


def _judged_share(report: Report, device: DeviceReport, name: str) -> float:
    """How much of a device's judged time a state, a bottleneck or a cause takes."""
    found = report.judged_of(device.key)
    if report.diagnosis is None or found is None:
        raise UnmeasurableError("the report judges no time")
    whole = sum(found.account.values())
    if not whole:
        raise UnmeasurableError(f"{device.key} has no judged time")
    ns = getattr(found, f"{name}_ns") if name in STATES else found.account.get(name, found.ledger.get(name, 0))
    return float(ns / whole)


def of_diagnosis(report: Report, name: str) -> float:
    """A share of the diagnosis. Raises UnmeasurableError where nothing was judged."""
    if report.diagnosis is None or report.diagnosis.basis == "none":
        raise UnmeasurableError("the report judges no time")
    return float(getattr(report.diagnosis, name))


def units_of(report: Report, device: DeviceReport) -> float:
    """How many steady iterations would fill the window. Raises UnmeasurableError where it has none."""
    capture = by_iterations(report, device)
    if capture is not None:
        return capture.units
    if device.iterations is None or not device.iterations.closed or not device.iterations.steady:
        raise why_none(report, device, ("iterations",))
    return float(device.iterations.steady)


def _per_iteration(report: Report, device: DeviceReport, measure: Measure) -> float:
    """The mean over the steady iterations; of what is not known of each of them, that of the window."""
    units = units_of(report, device)
    capture = by_iterations(report, device)
    if measure.in_ledger:
        column: str | None = f"{'root' if measure.path[0] == 'root_ledger' else 'ledger'}.{measure.cause}"
    else:
        column = f"ops.{measure.path[1]}" if measure.path[0] == "ops" else _COLUMNS.get(measure.name)
    if capture is None or column is None:
        return _field(report, device, measure) / units
    return float(capture.table[column].mean()) if column in capture.table else 0.0


def _field(report: Report, device: DeviceReport, measure: Measure) -> float:
    if measure.counter is not None:
        return _counter(report, device, measure)
    found: object = device
    for name in measure.path:
        holder, found = found, found.get(name, 0) if isinstance(found, dict) else getattr(found, name)
        if found is None and measure.adds_up and ZERO_IF_NONE in markers_of(type(holder), name):
            return 0.0
        if found is None:
            raise why_none(report, device, measure.path)
    assert isinstance(found, int | float)  # as the types of the model say
    return float(found)


def _counter(report: Report, device: DeviceReport, measure: Measure) -> float:
    """The mean of a counter in the window, or another of its means."""
    counters = {each.id: each for each in device.gpu_metrics.metrics} if device.gpu_metrics is not None else {}
    counter = counters.get(measure.counter or "")
    value: float | None = getattr(counter, measure.path[2]) if counter is not None else None
    if value is None:
        raise why_none(report, device, measure.path)
    return value


def require_evidence(report: Report | WhatIf, measure: Measure) -> None:
    """Raise UnmeasurableError where what it rests on was not captured, or its cause was disabled: a 0 would mean
    nothing."""
    cause = measure.cause
    if cause is not None and cause in disabled_causes(report.settings):
        raise UnmeasurableError(f"the cause {cause} was disabled: analyse it without --disable {cause}")
    needed = {each.kind for each in _markers(measure.path[0]) if isinstance(each, Needs)}
    tables = set(CAUSES[cause].tables) if cause is not None else set()
    needed |= {kind for kind in BY_OPTION if tables & set(KINDS[kind].tables)}
    missing = {each.id for each in report.trace.capabilities if not each.available} & needed
    if needed >= EITHER and not missing >= EITHER:
        missing -= EITHER
    if missing:
        options = " ".join(KINDS[kind].recapture or "" for kind in BY_OPTION if kind in missing)
        what = " and ".join(kind for kind in BY_OPTION if kind in missing)
        raise UnmeasurableError(f"the trace has no {what} evidence: {options} brings it")


def why_none(report: Report, device: DeviceReport, path: tuple[str, ...]) -> UnmeasurableError:
    """Why the field at `path` holds None, and what would fill it."""
    if path[-1] == "per_iteration" and device.iterations is None:
        path = ("iterations",)
    why = next((each.text for each in _markers(path[0]) if isinstance(each, WhyNone)), None)
    if path[0] == "utilization":
        why = device.utilization.estimate.missing or why
    elif path[0] != GPU_METRICS and getattr(device, path[0]) is not None:
        why = None
    if why is not None:
        return UnmeasurableError(why)
    fuller = f"; a fuller capture: {report.recapture}" if report.recapture else ""
    return UnmeasurableError(f"the report has no value for it{fuller}")


def _markers(field: str) -> tuple[object, ...]:
    """The type of a field of a device; None for other names, such as the findings."""
    return markers_of(DeviceReport, field) if field in fields_of(DeviceReport) else ()
