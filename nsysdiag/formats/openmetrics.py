"""The headline numbers of a report as gauges, for the textfile collector of a Prometheus node exporter.

Base units: seconds, bytes, ratios from 0 to 1. What was not measurable is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.view import SEVERITIES
from nsysdiag.formats.exposition import PREFIX, Family, Labels, Sample, clean, exposition, ratio, seconds
from nsysdiag.formats.format import Format, RenderOptions
from nsysdiag.workflow_commands import TEXT

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report

INFO = "report_info"
MARKER = f"# HELP {PREFIX}{INFO} Written by nsysdiag: ".encode()
UTILIZATION = {"time": "util_time_share", "period": "util_period_share", "sm_active": "sm_active_share"}
"""The kinds of utilization, and the names of their shares in the report."""

Values = list[tuple[Labels, int | float | str | None]]


@dataclass(frozen=True, slots=True)
class Gauge:
    """A metric of each device: `values` gives its values, with labels beside those of the device."""

    name: str
    help: str
    unit: str
    values: Callable[[Report, DeviceReport], Values]


def render(report: Report, _options: RenderOptions) -> bytes:
    """All gauges, of each device one after the other."""
    families = [_report_info(report)]
    for gauge in GAUGES:
        samples = [
            Sample(_labels(report, device) + labels, value)
            for device in report.devices
            for labels, value in gauge.values(report, device)
        ]
        families.append(Family(gauge.name, gauge.help, gauge.unit, samples))
    return exposition(families)


def _report_info(report: Report) -> Family:
    trace = report.trace
    labels = {
        "trace": trace.file,
        "fingerprint": trace.fingerprint,
        "nsys_version": trace.nsys_version or "",
        "version": report.tool.version,
        "schema_version": report.schema_version,
    }
    told = "Written by nsysdiag: the trace that the other metrics are about."
    return Family(INFO, told, "", [Sample(tuple(labels.items()), 1)])


def _labels(report: Report, device: DeviceReport) -> Labels:
    return (("device", device.key), ("gpu", device.name), ("trace", report.trace.file))


def _one(pick: Callable[[DeviceReport], int | float | str | None]) -> Callable[[Report, DeviceReport], Values]:
    return lambda _report, device: [((), pick(device))]


def _share(pick: Callable[[DeviceReport], int]) -> Callable[[Report, DeviceReport], Values]:
    return _one(lambda device: ratio(pick(device), device.window_ns))


def _device_info(_report: Report, device: DeviceReport) -> Values:
    sms = "" if device.sm_count is None else str(device.sm_count)
    return [((("verdict", device.verdict.id), ("sm_count", sms)), 1)]


def _utilization(_report: Report, device: DeviceReport) -> Values:
    found = device.utilization
    shares = {
        kind: found.get(name) if isinstance(found, dict) else getattr(found, name, None)
        for kind, name in UTILIZATION.items()
    }
    return [((("kind", kind),), share) for kind, share in shares.items() if isinstance(share, int | float)]


def _by_cause(ledger: dict[str, int]) -> Values:
    """Names that differ in what does not print alone are one label."""
    causes: Counter[str] = Counter()
    for cause, ns in ledger.items():
        causes[clean(cause)] += ns
    return [((("cause", cause),), seconds(ns)) for cause, ns in sorted(causes.items())]


def _operations(_report: Report, device: DeviceReport) -> Values:
    ops = device.ops
    kinds = {"kernel": ops.kernel, "memcpy": ops.memcpy, "memset": ops.memset, "graph": ops.graph}
    return [((("kind", kind),), count) for kind, count in kinds.items()]


def _findings(report: Report, device: DeviceReport) -> Values:
    """By severity, those without any as well: an alert must see them go. An unknown severity is `info`."""
    own = [finding.severity for finding in report.findings if finding.device == device.key]
    counts = Counter(each if each in SEVERITIES else "info" for each in own)
    return [((("severity", severity),), counts[severity]) for severity in SEVERITIES]


def _findings_lost(report: Report, device: DeviceReport) -> Values:
    lost = [finding.lost_ns for finding in report.findings if finding.device == device.key]
    return [((), seconds(sum(lost)))]


def _iteration(device: DeviceReport, name: str) -> str | None:
    found = device.iterations
    if found is None or not found.steady:
        return None
    return seconds(found.p50_ns if name == "p50" else found.p95_ns)


def _cost(_report: Report, device: DeviceReport) -> Values:
    cost = device.cost
    return [] if cost is None else [((("currency", cost.currency),), cost.gpu_hour_cost)]


def _lost_cost(_report: Report, device: DeviceReport) -> Values:
    cost = device.cost
    if cost is None:
        return []
    amounts = {"idle": cost.idle, "exposed_communication": cost.exposed_comm, "exposed_copy": cost.exposed_copy}
    return [((("currency", cost.currency), ("part", part)), each.hour) for part, each in amounts.items()]


GAUGES = (
    Gauge("device_info", "What a GPU is like, and its verdict.", "", _device_info),
    Gauge("window_seconds", "Time under analysis.", "seconds", _one(lambda device: seconds(device.window_ns))),
    Gauge("busy_seconds", "Time in which anything ran.", "seconds", _one(lambda device: seconds(device.busy_ns))),
    Gauge("idle_seconds", "Time in which nothing ran.", "seconds", _one(lambda device: seconds(device.idle_ns))),
    Gauge("busy_ratio", "Share of the window in which anything ran.", "ratio", _share(lambda device: device.busy_ns)),
    Gauge("idle_ratio", "Share of the window in which nothing ran.", "ratio", _share(lambda device: device.idle_ns)),
    Gauge(
        "compute_ratio",
        "Share of the window with kernels that are not communication.",
        "ratio",
        _share(lambda device: device.compute_ns),
    ),
    Gauge(
        "exposed_communication_ratio",
        "Share of the window with communication that no compute hides.",
        "ratio",
        _share(lambda device: device.exposed_comm_ns),
    ),
    Gauge(
        "exposed_copy_ratio",
        "Share of the window with copies that no kernel hides.",
        "ratio",
        _share(lambda device: device.exposed_copy_ns),
    ),
    Gauge("utilization_ratio", "What a utilization counter shows, by its kind.", "ratio", _utilization),
    Gauge(
        "ledger_seconds",
        "Idle time by cause; the sum is the idle time.",
        "seconds",
        lambda _report, device: _by_cause(device.ledger),
    ),
    Gauge(
        "root_ledger_seconds",
        "The same idle time by root cause, after waits were followed to what ended them.",
        "seconds",
        lambda _report, device: _by_cause(device.root_ledger),
    ),
    Gauge(
        "coverage_ratio",
        "Share of the idle time that the host must explain which has evidence.",
        "ratio",
        _one(lambda device: device.coverage),
    ),
    Gauge("gaps", "Maximal idle intervals.", "", _one(lambda device: device.gap_count)),
    Gauge("operations", "Operations that ran, by their kind.", "", _operations),
    Gauge("launches", "Calls that launched anything.", "", _one(lambda device: device.launch.calls)),
    Gauge("copied_bytes", "Bytes of all copies and sets.", "bytes", _one(lambda device: device.copies.bytes)),
    Gauge("findings", "Findings by severity.", "", _findings),
    Gauge("findings_lost_seconds", "Time that all findings cost, each counted once.", "seconds", _findings_lost),
    Gauge(
        "iterations",
        "Iterations that were found.",
        "",
        _one(lambda device: None if device.iterations is None else device.iterations.count),
    ),
    Gauge(
        "iteration_p50_seconds",
        "Median length of a steady iteration.",
        "seconds",
        _one(lambda device: _iteration(device, "p50")),
    ),
    Gauge(
        "iteration_p95_seconds",
        "95th percentile of the lengths of steady iterations.",
        "seconds",
        _one(lambda device: _iteration(device, "p95")),
    ),
    Gauge("cost_per_hour", "Price of an hour of this GPU, in the currency.", "", _cost),
    Gauge("lost_cost_per_hour", "What an hour loses, in the currency, by what it is lost to.", "", _lost_cost),
)


def is_ours(data: bytes) -> bool:
    """Does the file begin with the help text of our info metric?"""
    return data.startswith(MARKER)


FORMAT = Format("prom", ".prom", "OpenMetrics gauges for a Prometheus textfile collector", render, is_ours, TEXT)
