"""What a trace had no evidence for: a budget on it is an error, since neither kept nor broken would be true."""

from __future__ import annotations

from nsysdiag.causes import CAUSES
from nsysdiag.ci.names import GPU_METRICS, Measure
from nsysdiag.config.settings import disabled_causes
from nsysdiag.fields import Needs, WhyNone, fields_of, markers_of
from nsysdiag.report import DeviceReport, Report
from nsysdiag.trace.capabilities import KINDS

BY_OPTION = ("cuda-api", "os-runtime", "scheduling", "cpu-samples", "gpu-context-switch")
"""Evidence that is missing where it was not captured. The tables of other kinds are missing where nothing happened."""
EITHER = {"scheduling", "cpu-samples"}
"""Each of the two shows that a thread ran."""

_OTHER = "the report has no value for it"


class UnmeasurableError(Exception):
    """This device, or this report, does not tell. The text says why, and what would."""


def require_evidence(report: Report, measure: Measure) -> None:
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
    return UnmeasurableError(f"{_OTHER}; a fuller capture: {report.recapture}" if report.recapture else _OTHER)


def _markers(field: str) -> tuple[object, ...]:
    """What the type of a field of a device says; none for what is no such field, as the findings."""
    return markers_of(DeviceReport, field) if field in fields_of(DeviceReport) else ()
