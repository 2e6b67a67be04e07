"""The sections of the HTML report in the order in which they are read.

To add one, write its file here and its template in templates/sections, and name it below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.sections import (
    api,
    communication,
    copies,
    findings,
    gap_lengths,
    gaps,
    health,
    iterations,
    kernels,
    launches,
    ledger,
    method,
    overview,
    ranks,
    signatures,
    timeline,
    trouble,
)

if TYPE_CHECKING:
    from nsysdiag.output.sections.section import DeviceSection, ReportSection

OPENING: tuple[ReportSection, ...] = (overview.SECTION, ranks.SECTION, findings.SECTION, timeline.SECTION)
PER_DEVICE: tuple[DeviceSection, ...] = (
    trouble.SECTION,
    ledger.SECTION,
    iterations.SECTION,
    gaps.SECTION,
    gap_lengths.SECTION,
    signatures.SECTION,
    kernels.SECTION,
    copies.SECTION,
    communication.SECTION,
    launches.SECTION,
    api.SECTION,
)
CLOSING: tuple[ReportSection, ...] = (health.SECTION, method.SECTION)
