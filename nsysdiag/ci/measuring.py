"""The value of a measure on a device of a report, or what evidence for it is missing.

A budget on something that a trace does not tell is an error, since neither kept nor broken would be true.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache

from msgspec import Struct

from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.causes import CAUSES
from nsysdiag.comparison.sides import IDLE, LENGTH, by_iterations
from nsysdiag.config.settings import disabled_causes
from nsysdiag.events.gpu_metrics import METRICS, MetricUnit
from nsysdiag.fields import NO_BUDGET, SUM, ZERO_IF_NONE, Needs, NumberUnit, WhyNone, fields_of, leaves, markers_of
from nsysdiag.record import Record
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report
from nsysdiag.time.facts import STATES
from nsysdiag.trace.capabilities import KINDS

# The numbers of a device that a budget can be about, by their dotted paths in the JSON of a report.
#
# ```
# idle_ns                       a field of the device             idle_share         idle_ns / window_ns
# ledger.sync                   a cause                           ledger.sync_share  ledger.sync / window_ns
# launch.launch_bound.count     a field of a record in it         findings.high      findings of the report
# gpu_metrics.sm_active         the mean of a counter in the window, or another mean of it: gpu_metrics.sm_active.gaps
# judged.idle_share             of the time that the diagnosis is about: a state, a bottleneck (judged.input_share) or a
#                               cause
# diagnosis.share               the share of that time of the bottleneck in the headline
# ```
#
# They follow from the types of the model: a new field is a new name, and its markers say its unit and whether it adds
# up.

NS, SHARE, COUNT = "ns", "share", "count"
FINDINGS, ITERATION_LENGTH, GPU_METRICS = "findings", "length", "gpu_metrics"
JUDGED, DIAGNOSIS = "judged", "diagnosis"
OF_DIAGNOSIS = ("share", "unknown_share")
LEVELS = ("high", "medium", "low", "info", "all")
LEDGERS = ("ledger", "root_ledger")
MEANS = ("window", "kernels", "compute", "gaps", "idle", "lowest", "highest")
_UNITS = dict.fromkeys(NumberUnit, COUNT) | {NumberUnit.NS: NS, NumberUnit.SHARE: SHARE}
"""What budgets write behind a number of a unit: times and shares have units, all else has none."""


class Measure(Struct, frozen=True):
    """What a name means: the field at `path`, divided by the window if `of_window`. `unit`: ns, share or count.
    `adds_up` says that it is a sum over the window, which can be divided by it and by iterations."""

    name: str
    path: tuple[str, ...]
    unit: str
    adds_up: bool
    of_window: bool = False

    @property
    def is_findings(self) -> bool:
        """Is it a count of findings, which are of the whole report?"""
        return self.path[0] == FINDINGS

    @property
    def of_report(self) -> bool:
        """Is it a number of the whole report?"""
        return self.path[0] in (FINDINGS, DIAGNOSIS)

    @property
    def of_judged_time(self) -> bool:
        """Is it a share of the time that the diagnosis is about?"""
        return self.path[0] == JUDGED

    @property
    def cause(self) -> str | None:
        """The cause of idle time that it is about, None if it is about something else."""
        if self.of_judged_time:
            return self.path[1] if self.path[1] in CAUSES else None
        return self.path[-1] if self.in_ledger or "causes" in self.path else None

    @property
    def in_ledger(self) -> bool:
        """Is it a cause's part of all idle time?"""
        return self.path[0] in LEDGERS

    @property
    def counter(self) -> str | None:
        """The counter of the GPU that it is a mean of, None if it is none."""
        return self.path[1] if self.path[0] == GPU_METRICS and self.path[1] in METRICS else None


@cache
def measures() -> dict[str, Measure]:
    """All of them by name. A share that the device holds itself comes before one of the window."""
    found = {each.name: each for each in (*_numbers(DeviceReport), *_by_key())}
    shares = {}
    for each in found.values():
        name = f"{each.name.removesuffix('_ns')}_share"
        if each.unit == NS and each.adds_up and each.name != "window_ns" and name not in found:
            shares[name] = Measure(name, each.path, SHARE, False, of_window=True)
    return found | shares | {each.name: each for each in _of_judged_time()}


def _of_judged_time() -> Iterator[Measure]:
    """States, bottlenecks and causes of gaps, as shares of the time that the diagnosis is about."""
    causes = [cause.id for cause in CAUSES.values() if cause.side != "root"]
    for name in dict.fromkeys((*STATES, *BOTTLENECK_IDS, *causes)):
        yield Measure(f"{JUDGED}.{name}_share", (JUDGED, name), SHARE, False)
    for name in OF_DIAGNOSIS:
        yield Measure(f"{DIAGNOSIS}.{name}", (DIAGNOSIS, name), SHARE, False)


def nearest(name: str) -> str | None:
    """The name that was probably meant, None if none is like it."""
    known = measures()
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return close[0]
    ends = [each for each in known if each.split(".")[-1] in (name, f"{name}_ns")]
    return min(ends, key=len) if ends else None


def _numbers(record: type[Record], path: tuple[str, ...] = ()) -> Iterator[Measure]:
    """The numbers among the fields of a record, and of the records in it, that are figures of the device. Raises
    TypeError for one whose type does not say its unit."""
    for name, hint in fields_of(record).items():
        for leaf in leaves(hint, deep=False):
            if NO_BUDGET in leaf.markers or leaf.unit is NumberUnit.NUMBER:
                continue
            if isinstance(leaf.kind, type) and issubclass(leaf.kind, Record):
                yield from _numbers(leaf.kind, (*path, name))
            elif leaf.kind in (int, float):
                if leaf.unit is None:
                    raise TypeError(
                        f"{record.__name__}.{name}: its type must say its unit, see nsysdiag.fields.NumberUnit"
                    )
                yield _measure((*path, name), _UNITS[leaf.unit], adds_up=SUM in leaf.markers)


def _by_key() -> Iterator[Measure]:
    """What stands under names of its own: causes, counters, findings."""
    of_gaps = [cause.id for cause in CAUSES.values() if cause.side != "root"]
    for ledger, causes in zip(LEDGERS, (of_gaps, CAUSES), strict=True):
        yield from (_measure((ledger, cause), NS, adds_up=True) for cause in causes)
    yield from (_measure(("launch", "launch_bound", "causes", cause), NS, adds_up=True) for cause in of_gaps)
    yield _measure(("sync_drained", "gaps"), COUNT, adds_up=True)
    yield _measure(("sync_drained", "ns"), NS, adds_up=True)
    for metric, each in METRICS.items():
        unit = SHARE if each.unit is MetricUnit.SHARE else COUNT
        yield from (_measure((GPU_METRICS, metric, mean), unit) for mean in MEANS)
        yield Measure(f"{GPU_METRICS}.{metric}", (GPU_METRICS, metric, MEANS[0]), unit, False)
    yield from (_measure((FINDINGS, level), COUNT) for level in LEVELS)


def _measure(path: tuple[str, ...], unit: str, *, adds_up: bool = False) -> Measure:
    return Measure(".".join(path), path, unit, adds_up)


BY_OPTION = ("cuda-api", "os-runtime", "scheduling", "cpu-samples", "gpu-context-switch")
"""Evidence that is missing if it was not captured. The tables of other kinds are missing if nothing happened."""
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
    """A share of the diagnosis. Raises UnmeasurableError if nothing was judged."""
    if report.diagnosis is None or report.diagnosis.basis == "none":
        raise UnmeasurableError("the report judges no time")
    return float(getattr(report.diagnosis, name))


def units_of(report: Report, device: DeviceReport) -> float:
    """How many steady iterations would fill the window. Raises UnmeasurableError if it has none."""
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
    """Raise UnmeasurableError if what it rests on was not captured, or its cause was disabled: a 0 would mean
    nothing."""
    cause = measure.cause
    if cause is not None and cause in disabled_causes(report.settings):
        raise UnmeasurableError(f"the cause {cause} was disabled: analyze it without --disable {cause}")
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
