"""What a trace had no evidence for: a budget on it is an error, since neither kept nor broken would be true."""

from __future__ import annotations

from nsysdiag.causes import CAUSES
from nsysdiag.ci.names import Measure
from nsysdiag.config.settings import disabled_causes
from nsysdiag.report import DeviceReport, Report
from nsysdiag.trace.capabilities import KINDS

BY_OPTION = ("cuda-api", "os-runtime", "scheduling", "cpu-samples", "gpu-context-switch")
"""Evidence that is missing where it was not captured. The tables of other kinds are missing where nothing happened."""
EITHER = {"scheduling", "cpu-samples"}
"""Each of the two shows that a thread ran."""

_OF_LAUNCHES = ("cuda-api",)
_OF_FIELD = {
    "iterations": "nothing repeats in it: put NVTX ranges around the steps, and capture with --trace=nvtx",
    "coverage": "it has no idle time that the host must explain",
    "gpu_metrics": "its GPU counters were not captured: --gpu-metrics-devices=all brings them",
    "memory": "the use of memory was not captured: --cuda-memory-usage=true brings it",
    "unified_memory": "nothing of unified memory was captured: --cuda-um-cpu-page-faults=true "
    "--cuda-um-gpu-page-faults=true bring its faults",
    "cost": "this GPU has no price: give one with --gpu-hour-cost or in [cost]",
    "triage": "nothing ran on this GPU",
}
"""Why a field of a device itself is None."""
_OF_UTILIZATION = "the trace does not say what the chip holds: --gpu-metrics-devices=all measures it"
_OTHER = "the report has no value for it"


class UnmeasurableError(Exception):
    """This device, or this report, does not tell. The text says why, and what would."""


def require_evidence(report: Report, measure: Measure) -> None:
    """Raise UnmeasurableError where what it rests on was not captured, or its cause was disabled: a 0 would mean
    nothing."""
    cause = measure.cause
    if cause is not None and cause in disabled_causes(report.settings):
        raise UnmeasurableError(f"the cause {cause} was disabled: analyse it without --disable {cause}")
    needed = set(_OF_LAUNCHES) if measure.path[0] in ("launch", "sync_drained") else set()
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
        return UnmeasurableError(_OF_FIELD["iterations"])
    if path[0] == "utilization":
        return UnmeasurableError(device.utilization.estimate.missing or _OF_UTILIZATION)
    if path[0] in _OF_FIELD and (path[0] == "gpu_metrics" or getattr(device, path[0]) is None):
        return UnmeasurableError(_OF_FIELD[path[0]])
    return UnmeasurableError(f"{_OTHER}; a fuller capture: {report.recapture}" if report.recapture else _OTHER)
