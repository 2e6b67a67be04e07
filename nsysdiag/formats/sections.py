"""The sections of a report in the order in which they are read. Every format goes through them.

To add one, write `show.py` in the folder of its subject, and name it below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.communication import show as communication
from nsysdiag.cost import show as cost
from nsysdiag.formats.html.sections import (
    api,
    copies,
    device_memory,
    findings,
    gap_lengths,
    gaps,
    gpu_metrics,
    health,
    host,
    iterations,
    launches,
    ledger,
    method,
    nvtx,
    overview,
    ranks,
    signatures,
    timeline,
    trouble,
    unified_memory,
    utilization,
)
from nsysdiag.kernels import show as kernels

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
    trouble.section,
    ledger.section,
    signatures.section,
    iterations.section,
    gaps.section,
    gap_lengths.section,
    kernels.section,
    copies.section,
    unified_memory.section,
    device_memory.section,
    communication.section,
    nvtx.section,
    launches.section,
    api.section,
    utilization.section,
    gpu_metrics.section,
)
CLOSING: tuple[Callable[[Context], Section | None], ...] = (host.section, health.section, method.section)
