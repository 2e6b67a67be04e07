"""Utilization: what a dashboard shows of the device, what it did, and how much of the chip its kernels fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.utilization.chart import draw_utilization
from nsysdiag.utilization.words import ESTIMATED, METHOD, percent_of, sm_sentences

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport
    from nsysdiag.utilization.facts import Utilization

MAX_ROWS, MAX_SPOTS = 50, 125


def view(context: Context, device: DeviceReport) -> View | None:
    """Both numbers over time, the shares, the shapes of the kernels; None without a window."""
    found = device.utilization
    if found.util_time_share is None:
        return None
    rows = found.kernels[: context.rows(MAX_ROWS)]
    return {
        "found": found,
        "facts": _facts(found),
        "sentences": [*sm_sentences(found), *(f"{note[:1].upper()}{note[1:]}." for note in found.notes)],
        "chart": draw_utilization(found, device.window.end_ns, context.rows(MAX_SPOTS)),
        "rows": rows,
        "sized": any(row.blocks_per_sm is not None or row.resident_share is not None for row in rows),
        "method": METHOD,
        "estimated": ESTIMATED,
        "percent_of": percent_of,
    }


def _facts(found: Utilization) -> list[tuple[str, str]]:
    estimate = found.estimate
    source = {"estimate": "SM activity, estimated", "gpu-metrics": "SM activity, measured"}
    return [
        ("Utilization by time", percent_of(found.util_time_share)),
        ("By polling", percent_of(found.util_period_share)),
        ("Busy", percent_of(found.busy_share)),
        ("Computing", percent_of(found.compute_share)),
        ("Exposed communication", percent_of(found.exposed_comm_share)),
        ("Exposed copies", percent_of(found.exposed_copy_share)),
        ("Idle", percent_of(found.idle_share)),
        (source.get(found.sm_source or "", "SM activity"), percent_of(found.sm_active_share)),
        ("Room on the SMs filled, estimated", percent_of(estimate.resident_share)),
        ("SM activity / utilization", "–" if found.efficiency is None else f"{found.efficiency:.2f}"),
    ]


section = device_section("utilization", "Utilization", view)
