"""The page of a batch: all traces in one table, the worst first. Complete without scripts or a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from nsysdiag.document.figures import Segment, stack
from nsysdiag.document.words import SEVERITY_ICONS
from nsysdiag.formats.batch.history import Spark, series, spark
from nsysdiag.formats.batch.rows import FAILED, Row, headline, parts, result, rows, shown_name
from nsysdiag.formats.html import page
from nsysdiag.formats.html.assets import asset, page_script, page_style
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import BatchSummary, HistoryLine

TREND = "trend.html"


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a device's window: exact, of the whole, and in words."""

    ns: int
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A row as the page shows it; `href` leads to its report and is empty without one."""

    row: Row
    name: str
    href: str
    failed: bool
    split: list[Segment]
    shares: list[Share]
    icon: str
    spark: Spark | None


def render(summary: BatchSummary, history: Sequence[HistoryLine]) -> bytes:
    """The whole page as UTF-8."""
    runs = series(history)
    drawn = [_drawn(row, runs) for row in rows(summary)]
    return framed(
        "batch.html",
        summary,
        mark=result(summary),
        headline=headline(summary),
        rows=drawn,
        sparks=any(each.spark for each in drawn),
        trend=TREND if history else "",
        config=str(summary.settings.get("config") or ""),
        warnings=[(entry.input, warning) for entry in summary.entries for warning in entry.warnings],
    )


def framed(template: str, summary: BatchSummary, **values: object) -> bytes:
    """A template of a page of this batch, drawn with `values`, as UTF-8."""
    style = page_style() + asset("batch.css")
    return page.framed(template, summary.tool, style, page_script(), tool=summary.tool, **values)


def _drawn(row: Row, runs: dict[tuple[str, str], list[HistoryLine]]) -> Drawn:
    device, shares = row.device, []
    if device:  # idle, busy, and what the device was busy with
        times = (device.idle_ns, device.busy_ns, device.compute_ns, device.exposed_comm_ns, device.exposed_copy_ns)
        whole = device.window_ns
        shares = [Share(ns, ns / whole if whole else 0.0, format_share(ns, whole)) for ns in times]
    return Drawn(
        row=row,
        name=shown_name(row.entry.input),
        href=link(row.entry.report),
        failed=row.entry.status == FAILED,
        split=stack((part.label, part.ns, None, part.id) for part in parts(device)) if device else [],
        shares=shares,
        icon=SEVERITY_ICONS.get(row.top.severity, "○") if row.top else "",
        spark=spark(runs.get((row.entry.input, device.key), [])) if device else None,
    )


def link(path: str) -> str:
    """A path within the folder as an address that leads nowhere else."""
    parts = [part for part in path.encode("utf-8", "backslashreplace").split(b"/") if part not in (b"", b".", b"..")]
    return "./" + quote(b"/".join(parts), safe="/-._~") if parts else ""
