"""The value of a measure on a device of a report."""

from __future__ import annotations

from nsysdiag.ci.evidence import UnmeasurableError, require_evidence, why_none
from nsysdiag.ci.names import Measure
from nsysdiag.comparison.side import IDLE, LENGTH, by_iterations
from nsysdiag.fields import ZERO_IF_NONE, markers_of
from nsysdiag.report import DeviceReport, Report

_COLUMNS = {
    "window_ns": LENGTH,
    "compute_ns": "compute",
    "exposed_comm_ns": "exposed_comm",
    "exposed_copy_ns": "exposed_copy",
    "idle_ns": IDLE,
}


def value_of(report: Report, device: DeviceReport, measure: Measure, *, per_iteration: bool) -> float:
    """In the unit of the measure, for an iteration where asked for. Raises UnmeasurableError."""
    require_evidence(report, measure)
    if per_iteration:
        return _per_iteration(report, device, measure)
    value = _field(report, device, measure)
    if not measure.of_window:
        return value
    if not device.window_ns:
        raise UnmeasurableError("nothing ran on this GPU")
    return value / device.window_ns


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
    column = _column(measure)
    if capture is None or column is None:
        return _field(report, device, measure) / units
    return float(capture.table[column].mean()) if column in capture.table else 0.0


def _column(measure: Measure) -> str | None:
    """Its column in the table of steady iterations, None where it has none."""
    if measure.in_ledger:
        return f"{'root' if measure.path[0] == 'root_ledger' else 'ledger'}.{measure.cause}"
    return f"ops.{measure.path[1]}" if measure.path[0] == "ops" else _COLUMNS.get(measure.name)


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
