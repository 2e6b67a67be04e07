"""The headline numbers of a report as gauges, for the textfile collector of a Prometheus node exporter.

Base units: seconds, bytes, ratios from 0 to 1. What was not measurable is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from nsysdiag.arrays.groups import summed
from nsysdiag.document.columns import part
from nsysdiag.document.view import SEVERITIES
from nsysdiag.fields import NS, SUM, NumberUnit, leaves_at, value_at
from nsysdiag.formats import RenderOptions
from nsysdiag.report import DeviceReport, Report
from nsysdiag.units import decimal

# Text that Prometheus and OpenMetrics parsers both read: gauges with labels, without features of only one of them.
#
# ```
# # HELP nsysdiag_idle_seconds Time in which nothing ran.
# # TYPE nsysdiag_idle_seconds gauge
# # UNIT nsysdiag_idle_seconds seconds
# nsysdiag_idle_seconds{device="gpu0"} 0.040
# # EOF
# ```
#
# An info metric is a gauge of 1 here: the type `info` is unknown to the parser of the node exporter.

PREFIX = "nsysdiag_"
Labels = tuple[tuple[str, str], ...]


Sample = tuple[Labels, int | float | str | None]
"""One value with its labels: a whole number, a fraction, or exact text from `seconds`. None is left out, for it was not
measurable."""


def family(name: str, help: str, unit: str, samples: Iterable[Sample]) -> list[str]:
    """The lines of all samples of one metric; none without samples. `name` is without the prefix; it ends in `unit` if
    there is one."""
    name = PREFIX + name
    shown = [line for labels, value in samples if (line := _sample(name, labels, value))]
    about = [f"# HELP {name} {_escaped(help)}", f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else [])]
    return [*about, *shown] if shown else []


def seconds(ns: int) -> str:
    """Nanoseconds as seconds, with all nine digits."""
    return decimal(ns, 9)


def clean(value: str) -> str:
    """A label's value without what does not print; line ends stay, they are escaped."""
    return "".join(each for each in value if each.isprintable() or each == "\n")


def _sample(name: str, labels: Labels, value: float | str | None) -> str:
    """The line of a sample; empty if it has no value."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    shown = ",".join(f'{label}="{_escaped(clean(text))}"' for label, text in labels)
    return f"{name}{{{shown}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


INFO = "report_info"
MARKER = f"# HELP {PREFIX}{INFO} Written by nsysdiag: ".encode()
UTILIZATION = {"time": "util_time_share", "period": "util_period_share", "sm_active": "sm_active_share"}
"""The kinds of utilization, and the names of their shares in the report."""

_BASE_UNITS = {NumberUnit.NS: "seconds", NumberUnit.SHARE: "ratio", NumberUnit.BYTES: "bytes"}
"""The base unit of a number by what it counts in; all others have none."""


class Gauge(Struct, frozen=True):
    """A metric of each device: `values` gives its values, with labels in addition to those of the device."""

    name: str
    help: str
    unit: str
    values: Callable[[Report, DeviceReport], list[Sample]]


def render(report: Report, _options: RenderOptions) -> bytes:
    """All gauges, of each device one after the other."""
    trace = report.trace
    about = {
        "trace": trace.file,
        "fingerprint": trace.fingerprint,
        "nsys_version": trace.nsys_version or "",
        "version": report.tool.version,
        "schema_version": report.schema_version,
    }
    meaning = "Written by nsysdiag: the trace that the other metrics are about."
    lines = family(INFO, meaning, "", [(tuple(about.items()), 1)])
    for gauge in GAUGES:
        samples = (
            ((("device", device.key), ("gpu", device.name), ("trace", trace.file), *labels), value)
            for device in report.devices
            for labels, value in gauge.values(report, device)
        )
        lines += family(gauge.name, gauge.help, gauge.unit, samples)
    return "\n".join([*lines, "# EOF", ""]).encode()


def _of_field(path: str, help: str, name: str = "") -> Gauge:
    """A field of the device in the base unit of what it counts, which its name ends in: `busy_ns` as `busy_seconds`."""
    leaf = leaves_at(DeviceReport, path)[0]
    unit = _BASE_UNITS.get(leaf.unit or NumberUnit.COUNT, "")
    full = "_".join(each for each in (name or path.removesuffix("_ns"), unit) if each)

    def values(_report: Report, device: DeviceReport) -> list[Sample]:
        value = value_at(device, path)
        return [((), seconds(value) if unit == "seconds" and value is not None else value)]

    return Gauge(full, help, unit, values)


def _of_window(path: str, help: str, name: str) -> Gauge:
    """The share of the window that a time of the device makes up."""
    if not {NS, SUM} <= set(leaves_at(DeviceReport, path)[0].markers):
        raise TypeError(f"{path} is not a time that adds up over the window")
    return Gauge(name, help, "ratio", lambda _report, device: [((), part(value_at(device, path), device.window_ns))])


def _device_info(_report: Report, device: DeviceReport) -> list[Sample]:
    sms = "" if device.sm_count is None else str(device.sm_count)
    return [((("verdict", device.verdict.id), ("sm_count", sms)), 1)]


def _labelled(label: str, values: Mapping[str, float | str | None]) -> list[Sample]:
    """A sample for each value, with its name as a label."""
    return [(((label, name),), value) for name, value in values.items()]


def _utilization(_report: Report, device: DeviceReport) -> list[Sample]:
    return _labelled("kind", {kind: getattr(device.utilization, name) for kind, name in UTILIZATION.items()})


def _by_cause(field: str, help: str) -> Gauge:
    """A time of each cause. Names that differ in what does not print alone are one label."""

    def values(_report: Report, device: DeviceReport) -> list[Sample]:
        causes = summed({clean(cause): ns} for cause, ns in getattr(device, field).items())
        return _labelled("cause", {cause: seconds(ns) for cause, ns in sorted(causes.items())})

    return Gauge(f"{field}_seconds", help, "seconds", values)


def _operations(_report: Report, device: DeviceReport) -> list[Sample]:
    return _labelled("kind", {kind: getattr(device.ops, kind) for kind in ("kernel", "memcpy", "memset", "graph")})


def _findings(report: Report, device: DeviceReport) -> list[Sample]:
    """By severity, those without any as well: an alert must see them go. An unknown severity is `info`."""
    own = [finding.severity for finding in report.findings if finding.device == device.key]
    counts = Counter(each if each in SEVERITIES else "info" for each in own)
    return _labelled("severity", {severity: counts[severity] for severity in SEVERITIES})


def _findings_lost(report: Report, device: DeviceReport) -> list[Sample]:
    return [((), seconds(sum(each.lost_ns for each in report.findings if each.device == device.key)))]


def _steady(percentile: str, help: str) -> Gauge:
    """A length of the steady iterations, of devices that have some."""

    def values(_report: Report, device: DeviceReport) -> list[Sample]:
        found = device.iterations
        known = found and found.closed and found.steady
        return [((), seconds(value_at(found, f"{percentile}_ns")))] if known else []

    return Gauge(f"iteration_{percentile}_seconds", help, "seconds", values)


def _cost(_report: Report, device: DeviceReport) -> list[Sample]:
    cost = device.cost
    return [] if cost is None else [((("currency", cost.currency),), cost.gpu_hour_cost)]


def _lost_cost(_report: Report, device: DeviceReport) -> list[Sample]:
    cost = device.cost
    if cost is None:
        return []
    amounts = {"idle": cost.idle, "exposed_communication": cost.exposed_comm, "exposed_copy": cost.exposed_copy}
    return [((("currency", cost.currency), ("part", part)), each.hour) for part, each in amounts.items()]


GAUGES = (
    Gauge("device_info", "The GPU model and its verdict.", "", _device_info),
    _of_field("window_ns", "Time under analysis."),
    _of_field("busy_ns", "Time in which anything ran."),
    _of_field("idle_ns", "Time in which nothing ran."),
    _of_window("busy_ns", "Share of the window in which anything ran.", "busy_ratio"),
    _of_window("idle_ns", "Share of the window in which nothing ran.", "idle_ratio"),
    _of_window("compute_ns", "Share of the window with kernels that are not communication.", "compute_ratio"),
    _of_window("exposed_comm_ns", "Share of the window with exposed communication.", "exposed_communication_ratio"),
    _of_window("exposed_copy_ns", "Share of the window with exposed copies.", "exposed_copy_ratio"),
    Gauge(
        "utilization_ratio",
        "GPU utilization as a monitoring counter shows it, by kind of counter.",
        "ratio",
        _utilization,
    ),
    _by_cause("ledger", "Idle time by cause; the sum is the idle time."),
    _by_cause(
        "root_ledger", "The same idle time by root cause: each wait is charged to what the thread that ended it did."
    ),
    _of_field("coverage", "Share of the idle time that the host must explain which has evidence."),
    _of_field("gap_count", "Number of gaps: maximal idle intervals.", "gaps"),
    Gauge("operations", "Operations that ran, by their kind.", "", _operations),
    _of_field("launch.calls", "Calls that launched anything.", "launches"),
    _of_field("copies.bytes", "Bytes of all copies and sets.", "copied"),
    Gauge("findings", "Findings by severity.", "", _findings),
    Gauge("findings_lost_seconds", "Time lost to all findings, each counted once.", "seconds", _findings_lost),
    _of_field("iterations.count", "Iterations that were found.", "iterations"),
    _steady("p50", "Median length of a steady iteration."),
    _steady("p95", "95th percentile of the lengths of steady iterations."),
    Gauge("cost_per_hour", "Price of an hour of this GPU, in the currency.", "", _cost),
    Gauge("lost_cost_per_hour", "Cost of an hour's lost time, in the currency, by what it is lost to.", "", _lost_cost),
)


def is_ours(data: bytes) -> bool:
    """Does the file begin with the help text of our info metric?"""
    return data.startswith(MARKER)
