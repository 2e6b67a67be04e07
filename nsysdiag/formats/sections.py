"""The sections of a report in the order in which they are read: the page, Markdown and text go through them.

To add one, write `show.py` in the folder of its subject, and name it below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.cost import show as cost
from nsysdiag.counters import show as counters
from nsysdiag.critical_path import show as critical_path
from nsysdiag.diagnosis import show as diagnosis
from nsysdiag.document.blocks import Section, SectionScope
from nsysdiag.document.words import window_sentence
from nsysdiag.formats.html import section as drawn
from nsysdiag.formats.html.timeline import timeline_section
from nsysdiag.gap_groups import show as gap_lengths
from nsysdiag.host import show as host
from nsysdiag.iterations import show as iterations
from nsysdiag.kernels import show as kernels
from nsysdiag.launches import show as launches
from nsysdiag.memory import show as memory
from nsysdiag.ranges import show as ranges
from nsysdiag.ranks.show import blocks as ranks
from nsysdiag.replay.show import outlooks
from nsysdiag.trace import show as trace
from nsysdiag.utilization import show as utilization

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsysdiag.document.view import Context
    from nsysdiag.report import DeviceReport


OPENING: tuple[Callable[[Context], Section | None], ...] = (
    diagnosis.summary,
    outlooks.section,
    cost.section,
    drawn.findings_section,
    critical_path.section,
    timeline_section,
    ranks.devices,
    diagnosis.overview,
)
PER_DEVICE: tuple[Callable[[DeviceReport, Context], Section | None], ...] = (
    drawn.ledger_section,
    drawn.recurring,
    iterations.section,
    drawn.longest_section,
    gap_lengths.lengths,
    kernels.section,
    memory.copy_section,
    memory.unified_memory,
    memory.device_memory,
    kernels.communication_section,
    kernels.bandwidth,
    ranges.section,
    ranges.flame_section,
    launches.section,
    launches.calls,
    utilization.section,
    counters.section,
)
CLOSING: tuple[Callable[[Context], Section | None], ...] = (
    host.section,
    ranges.host_section,
    trace.health,
    diagnosis.method,
)


_BY_BOTTLENECK = (
    "SELECT device, name AS bottleneck, ns, share_of_scope FROM time_sums "
    "WHERE scope = 'judged' AND \"column\" = 'bottleneck' ORDER BY device, ns DESC"
)
_OF_DEVICE = {
    "ledger": "SELECT cause, title, idle_ns, root_idle_ns, share_of_idle FROM ledger {here} ORDER BY idle_ns DESC",
    "signatures": "SELECT * FROM signatures {here} ORDER BY total_ns DESC",
    "iterations": "SELECT * FROM steps {here} ORDER BY start_ns",
    "gaps": "SELECT * FROM gaps {here} ORDER BY length_ns DESC",
    "gap-lengths": "SELECT ns, count(*) AS stretches FROM time {here} AND state = 'idle' GROUP BY ns ORDER BY ns",
    "kernels": "SELECT * FROM kernels {here} ORDER BY total_ns DESC",
    "copies": "SELECT * FROM copies {here} ORDER BY total_ns DESC",
    "unified-memory": "SELECT * FROM migrations {here}",
    "device-memory": "SELECT * FROM device_memory {here}",
    "communication": "SELECT * FROM communication {here} ORDER BY total_ns DESC",
    "bandwidth": "SELECT * FROM bandwidth {here}",
    "nvtx": "SELECT * FROM ranges {here} ORDER BY own_ns DESC",
    "flames": "SELECT stack, cause, ns FROM stacks {here} ORDER BY ns DESC",
    "launches": "SELECT * FROM launches {here}",
    "api": "SELECT * FROM api {here} ORDER BY total_ns DESC",
    "utilization": "SELECT * FROM utilization {here}",
    "gpu-metrics": "SELECT * FROM gpu_metrics {here}",
}
_OF_REPORT = {
    "diagnosis": _BY_BOTTLENECK,
    "what-if": "SELECT title, saves_low_ns, saves_high_ns, saves_of_ns, saves_per FROM findings",
    "cost": "SELECT * FROM cost",
    "findings": "SELECT id, title, lost_ns, share, saves_low_ns, saves_high_ns FROM findings",
    "critical-path": "SELECT * FROM critical_path ORDER BY ns DESC",
    "timeline": "SELECT device, start_ns, end_ns, state, cause, call FROM time ORDER BY device, start_ns",
    "ranks": "SELECT * FROM ranks",
    "overview": "SELECT * FROM devices",
    "host": "SELECT * FROM threads",
}
"""The query of each section for `nsysdiag sql`: of a device, and of the whole report."""


class SectionGroup(Struct, frozen=True):
    """Sections that belong together: those of one device, which is one of several if they are `nested`, or of the whole
    report."""

    device: DeviceReport | None
    nested: bool
    sections: list[Section]


def groups(context: Context) -> list[SectionGroup]:
    """The sections of the report, those of each device in between."""
    several = len(context.report.devices) > 1
    of_devices = [SectionGroup(each, several, _of_device(each, context)) for each in context.report.devices]
    opening, closing = (_of_report(each, context) for each in (OPENING, CLOSING))
    return [SectionGroup(None, False, opening), *of_devices, SectionGroup(None, False, closing)]


def _of_report(shows: Iterable[Callable[[Context], Section | None]], context: Context) -> list[Section]:
    found = [section for show in shows if (section := show(context)) is not None]
    return [replace(each, sql=_OF_REPORT.get(each.id, "")) for each in found]


def _of_device(device: DeviceReport, context: Context) -> list[Section]:
    """With the query that gives the numbers of each. Unless it says otherwise, it is about the window of the device."""
    here = "WHERE device = '{}'".format(device.key.replace("'", "''"))
    window = SectionScope("window", window_sentence(device))
    found = [section for show in PER_DEVICE if (section := show(device, context)) is not None]
    return [
        replace(each, sql=_OF_DEVICE.get(each.id, "").format(here=here), scope=each.scope or window) for each in found
    ]
