"""The sections of a report in the order in which they are read: the page, Markdown and text go through them.

To add one, write `show.py` in the folder of its subject, and name it below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.communication import show as communication
from nsysdiag.cost import show as cost
from nsysdiag.counters import show as counters
from nsysdiag.critical_path import show as critical_path
from nsysdiag.diagnosis import show as diagnosis
from nsysdiag.document.blocks import Section, SectionScope
from nsysdiag.document.words import window_sentence
from nsysdiag.formats.html import findings, timeline
from nsysdiag.formats.html import section as ledger
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
    findings.section,
    critical_path.section,
    timeline.section,
    ranks.devices,
    diagnosis.overview,
)
PER_DEVICE: tuple[Callable[[DeviceReport, Context], Section | None], ...] = (
    ledger.section,
    ledger.recurring,
    iterations.section,
    ledger.longest_section,
    gap_lengths.lengths,
    kernels.section,
    memory.copy_section,
    memory.unified_memory,
    memory.device_memory,
    communication.section,
    communication.bandwidth,
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


class SectionGroup(Struct, frozen=True):
    """Sections that belong together: those of one device, or of the whole report."""

    device: DeviceReport | None
    sections: list[Section]


def groups(context: Context) -> list[SectionGroup]:
    """The sections of the report, those of each device in between."""
    return [
        SectionGroup(None, _held(show(context) for show in OPENING)),
        *(
            SectionGroup(
                device, [_of_window(each, device) for each in _held(show(device, context) for show in PER_DEVICE)]
            )
            for device in context.report.devices
        ),
        SectionGroup(None, _held(show(context) for show in CLOSING)),
    ]


def _of_window(section: Section, device: DeviceReport) -> Section:
    """Unless it says otherwise, a section of a device is about its window."""
    return replace(section, scope=section.scope or SectionScope("window", window_sentence(device)))


def _held(found: Iterable[Section | None]) -> list[Section]:
    return [section for section in found if section is not None]
