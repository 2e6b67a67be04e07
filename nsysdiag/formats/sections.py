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
from nsysdiag.gap_groups import show as gaps
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


# Each with the query for `nsysdiag sql` that gives the numbers of the section, empty if there is none.
OPENING: tuple[tuple[Callable[[Context], Section | None], str], ...] = (
    (
        diagnosis.summary,
        "SELECT device, name AS bottleneck, ns, share_of_scope FROM time_sums "
        "WHERE scope = 'judged' AND \"column\" = 'bottleneck' ORDER BY device, ns DESC",
    ),
    (outlooks.section, "SELECT title, saves_low_ns, saves_high_ns, saves_of_ns, saves_per FROM findings"),
    (cost.section, "SELECT * FROM cost"),
    (drawn.findings_section, "SELECT id, title, lost_ns, share, saves_low_ns, saves_high_ns FROM findings"),
    (critical_path.section, "SELECT * FROM critical_path ORDER BY ns DESC"),
    (timeline_section, "SELECT device, start_ns, end_ns, state, cause, call FROM time ORDER BY device, start_ns"),
    (ranks.devices, "SELECT * FROM ranks"),
    (diagnosis.overview, "SELECT * FROM devices"),
)
PER_DEVICE: tuple[tuple[Callable[[DeviceReport, Context], Section | None], str], ...] = (
    (
        drawn.ledger_section,
        "SELECT cause, title, idle_ns, root_idle_ns, share_of_idle FROM ledger {} ORDER BY idle_ns DESC",
    ),
    (drawn.recurring, "SELECT * FROM signatures {} ORDER BY total_ns DESC"),
    (iterations.section, "SELECT * FROM steps {} ORDER BY start_ns"),
    (drawn.longest_section, "SELECT * FROM gaps {} ORDER BY length_ns DESC"),
    (gaps.lengths, "SELECT ns, count(*) AS stretches FROM time {} AND state = 'idle' GROUP BY ns ORDER BY ns"),
    (kernels.section, "SELECT * FROM kernels {} ORDER BY total_ns DESC"),
    (memory.copy_section, "SELECT * FROM copies {} ORDER BY total_ns DESC"),
    (memory.unified_memory, "SELECT * FROM migrations {}"),
    (memory.device_memory, "SELECT * FROM device_memory {}"),
    (kernels.communication_section, "SELECT * FROM communication {} ORDER BY total_ns DESC"),
    (kernels.bandwidth, "SELECT * FROM bandwidth {}"),
    (ranges.section, "SELECT * FROM ranges {} ORDER BY own_ns DESC"),
    (ranges.flame_section, "SELECT stack, cause, ns FROM stacks {} ORDER BY ns DESC"),
    (launches.section, "SELECT * FROM launches {}"),
    (launches.calls, "SELECT * FROM api {} ORDER BY total_ns DESC"),
    (utilization.section, "SELECT * FROM utilization {}"),
    (counters.section, "SELECT * FROM gpu_metrics {}"),
)
"""In these `{}` is the condition on the device."""
CLOSING: tuple[tuple[Callable[[Context], Section | None], str], ...] = (
    (host.section, "SELECT * FROM threads"),
    (ranges.host_section, ""),
    (trace.health, ""),
    (diagnosis.method, ""),
)


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


def _of_report(shows: Iterable[tuple[Callable[[Context], Section | None], str]], context: Context) -> list[Section]:
    return [replace(section, sql=sql) for show, sql in shows if (section := show(context)) is not None]


def _of_device(device: DeviceReport, context: Context) -> list[Section]:
    """Unless it says otherwise, a section is about the window of the device."""
    here = "WHERE device = '{}'".format(device.key.replace("'", "''"))
    window = SectionScope("window", window_sentence(device))
    found = [(section, sql) for show, sql in PER_DEVICE if (section := show(device, context)) is not None]
    return [replace(each, sql=sql.format(here), scope=each.scope or window) for each, sql in found]
