"""The findings of one device: what is worth doing something about."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from nsysdiag.account.outside import Start
from nsysdiag.arrays.spill import laid, trim
from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.missing import DOUBTED
from nsysdiag.findings.attribution import Attribution, Shares, shares_of
from nsysdiag.findings.before_work import before_findings
from nsysdiag.findings.evidence_rows import Sightings
from nsysdiag.findings.findings import IdleFindings, findings_of
from nsysdiag.findings.inside import RangeSets
from nsysdiag.findings.kernels import KernelWork, kernel_findings
from nsysdiag.findings.phase_work import JudgedTime
from nsysdiag.findings.pointers import pointers_of
from nsysdiag.findings.text import FindingContext
from nsysdiag.findings.unfused import single_precision_findings, unfused_findings
from nsysdiag.pipeline.device_account import DeviceAccount
from nsysdiag.pipeline.device_gaps import DeviceGaps
from nsysdiag.pipeline.device_roots import DeviceRoots
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.programs.names import ids_of
from nsysdiag.report import DeviceReport, Finding
from nsysdiag.time.table import TimeTable
from nsysdiag.wakeups.batches import Batches, batches_of
from nsysdiag.wakeups.wakers import WakeFinder


class DeviceFindings(Struct, frozen=True):
    """The findings of a device, and those of them on its idle time, with what threads did behind waits."""

    found: list[Finding]
    idle: IdleFindings


def judged_time(found: DeviceGaps, time: TimeTable, focus: Focus, before: Start | None) -> JudgedTime:
    """The time that findings are about; `before` is judged time before the work of the device."""
    before_ns = 0 if before is None else sum(before.account.values())
    return JudgedTime.of(time, found.window.parts, focus.parts, before_ns)


def device_findings(
    found: DeviceGaps,
    roots: DeviceRoots,
    account: DeviceAccount,
    time: TimeTable,
    judged: JudgedTime,
    report: DeviceReport,
    before: Start | None,
    reading: Reading,
    host: HostReading,
    finder: Callable[[], WakeFinder],
) -> DeviceFindings:
    """The findings of a device; less sure where rows are missing. `before` is judged time before its first work."""
    limits, missing = reading.settings.findings, found.missing.result()
    context, idle = _idle_findings(found, roots, account, time, judged, report, reading, host, finder)
    work = KernelWork.of(found.device, judged, reading.activity.shapes, reading.strings, report.gpu_metrics)
    made = [
        *idle.found,
        *kernel_findings(report, context, time, work),
        *single_precision_findings(report, context),
        *unfused_findings(report, context),
        *before_findings(report.key, judged, before, host.tables.samples, host.call_chains, limits),
        *pointers_of(report, context, found.without_work.result(), idle.found),
    ]
    trim()
    if missing.reasons():
        made = [structs.replace(each, confidence=DOUBTED * each.confidence) for each in made]
    return DeviceFindings(made, idle)


def _idle_findings(
    found: DeviceGaps,
    roots: DeviceRoots,
    account: DeviceAccount,
    time: TimeTable,
    judged: JudgedTime,
    report: DeviceReport,
    reading: Reading,
    host: HostReading,
    finder: Callable[[], WakeFinder],
) -> tuple[FindingContext, IdleFindings]:
    """The findings on time in which the device waited, or worked exposed, and what all findings of it are about."""
    attribution, floor = Attribution.by_root(roots.root_slices), reading.settings.thresholds.root_floor
    batches = batches_of(roots.root_slices, roots.chains, finder, floor, judged.parts)
    shares, paths = laid(_shares(roots, account, attribution, batches, time, judged, host))
    trim()
    root_context = roots.root_context
    context = FindingContext(
        root_context,
        roots.keys,
        attribution,
        Sightings.of(root_context, host.layered, attribution.own),
        account.device_waits,
        time,
        batches,
        paths,
        RangeSets.of(root_context.ranges, root_context.axis),
        judged,
        reading.settings.findings,
        tuple(ids_of(host.frameworks)),
    )
    gpus = [each.key for each in reading.devices]
    return context, findings_of(report, context, shares, time, gpus)


def _shares(
    roots: DeviceRoots,
    account: DeviceAccount,
    attribution: Attribution,
    batches: Batches,
    time: TimeTable,
    judged: JudgedTime,
    host: HostReading,
) -> tuple[Shares, list[list[str]]]:
    """Whose idle time the judged one is, and the places in the program that it is at."""
    kinds, waited = batches.longest(account.kinds, attribution.cause), (account.device_waits, account.made)
    context, charged = roots.root_context, account.slice_bottlenecks
    return shares_of(context, host.layered, roots.keys, attribution, kinds, charged, time, waited, judged.parts)
