"""The sections of the HTML report in the order in which they are read.

To add one, write its file here and its template in templates/sections, and name it below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.html.sections import (
    api,
    communication,
    copies,
    cost,
    device_memory,
    findings,
    gap_lengths,
    gaps,
    gpu_metrics,
    health,
    host,
    iterations,
    kernels,
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

if TYPE_CHECKING:
    from nsysdiag.formats.html.sections.section import DeviceSection, ReportSection

OPENING: tuple[ReportSection, ...] = (
    overview.SECTION,
    findings.SECTION,
    timeline.SECTION,
    cost.SECTION,
    ranks.SECTION,
)
PER_DEVICE: tuple[DeviceSection, ...] = (
    trouble.SECTION,
    ledger.SECTION,
    signatures.SECTION,
    iterations.SECTION,
    gaps.SECTION,
    gap_lengths.SECTION,
    kernels.SECTION,
    copies.SECTION,
    unified_memory.SECTION,
    device_memory.SECTION,
    communication.SECTION,
    nvtx.SECTION,
    launches.SECTION,
    api.SECTION,
    utilization.SECTION,
    gpu_metrics.SECTION,
)
CLOSING: tuple[ReportSection, ...] = (host.SECTION, health.SECTION, method.SECTION)
