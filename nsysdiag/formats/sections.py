"""The sections of a report in the order in which they are read. Every format goes through them.

To add one, write `show.py` in the folder of its subject, and name it below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.communication import show as communication
from nsysdiag.copies import show as copies
from nsysdiag.cost import show as cost
from nsysdiag.counters import show as counters
from nsysdiag.diagnosis import show as triage
from nsysdiag.formats.html.sections import (
    findings,
    gap_lengths,
    gaps,
    health,
    ledger,
    method,
    nvtx,
    overview,
    ranks,
    signatures,
    timeline,
)
from nsysdiag.host import show as host
from nsysdiag.iterations import show as iterations
from nsysdiag.kernels import show as kernels
from nsysdiag.launches import show as launches
from nsysdiag.memory import show as memory
from nsysdiag.utilization import show as utilization

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.document.blocks import Section
    from nsysdiag.document.context import Context
    from nsysdiag.report import DeviceReport

OPENING: tuple[Callable[[Context], Section | None], ...] = (
    overview.section,
    findings.section,
    timeline.section,
    cost.section,
    ranks.section,
)
PER_DEVICE: tuple[Callable[[DeviceReport, Context], Section | None], ...] = (
    triage.section,
    ledger.section,
    signatures.section,
    iterations.section,
    gaps.section,
    gap_lengths.section,
    kernels.section,
    copies.section,
    memory.unified_memory,
    memory.device_memory,
    communication.section,
    nvtx.section,
    launches.section,
    launches.calls,
    utilization.section,
    counters.section,
)
CLOSING: tuple[Callable[[Context], Section | None], ...] = (host.section, health.section, method.section)
