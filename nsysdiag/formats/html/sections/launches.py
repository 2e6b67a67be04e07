"""How work reaches the device: is the host ahead, what ends its lead, and where launches are slower than the work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.context import Context
from nsysdiag.document.figures import percent, safe_color
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.launches.chart import draw_depth
from nsysdiag.launches.rows import DISTRIBUTIONS, distributions
from nsysdiag.launches.words import bubble_rate, launch_sentences, rate
from nsysdiag.units import format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import Collapses, DeviceReport, Distribution, RunAhead

MAX_SPOTS = 125
SIDE_BY_SIDE = ("kernel", "call", "interval")
"""The distributions that a histogram compares: launches are too slow where the last lies above the first."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How many durations of one kind lie in a bin, with the length of its bar."""

    count: int
    bar: str


@dataclass(frozen=True, slots=True)
class Bin:
    """A range of lengths in the histogram."""

    start_ns: int
    cells: list[Cell]


def view(context: Context, device: DeviceReport) -> View | None:
    """All that is known of the launches; None where nothing was launched."""
    launch = device.launch
    if not launch.launched_ops:
        return None
    found = distributions(device)
    bubbles, graphs = launch.bubbles, launch.graphs
    return {
        "facts": _facts(device),
        "sentences": launch_sentences(device, context.causes),
        "ahead": launch.run_ahead,
        "chart": draw_depth(launch.run_ahead, context.rows(MAX_SPOTS)) if launch.run_ahead else None,
        "distributions": [(DISTRIBUTIONS[name], each) for name, each in found],
        "histogram": _histogram(dict(found)),
        "collapses": [(row, _cause(context, row)) for row in (launch.run_ahead.collapses if launch.run_ahead else [])],
        "bubbles": [(row, bubble_rate(row)) for row in (bubbles.rows if bubbles else [])],
        "bubble_count": bubbles.count if bubbles else 0,
        "graphs": graphs.rows if graphs else [],
        "graph_count": graphs.count if graphs else 0,
    }


def _cause(context: Context, row: Collapses) -> tuple[str, str]:
    return context.causes.title(row.cause), safe_color(context.causes[row.cause].color)


def _facts(device: DeviceReport) -> list[tuple[str, str]]:
    launch = device.launch
    return [
        ("Launched operations", format_count(launch.launched_ops)),
        ("Without a launch row", format_count(launch.unlaunched_ops)),
        ("Found the device idle", format_count(launch.found_device_idle)),
        ("Launches a second", rate(launch.calls, device.window_ns) if launch.calls else "–"),
        ("Median time between launches", _time(launch.median_interval_ns)),
        ("Median launch call", _time(launch.call.p50_ns if launch.call else None)),
        ("Median kernel", _time(launch.median_kernel_ns)),
        ("Median time in the queue", _time(launch.median_queue_delay_ns)),
        *_ahead(launch.run_ahead),
    ]


def _ahead(ahead: RunAhead | None) -> list[tuple[str, str]]:
    if ahead is None:
        return []
    return [
        ("Outstanding in the median", format_count(ahead.p50)),
        ("Nothing outstanding", format_share(ahead.empty_ns, ahead.observed_ns)),
    ]


def _time(ns: int | None) -> str:
    return "–" if ns is None else format_ns(ns)


def _histogram(found: dict[str, Distribution]) -> list[Bin]:
    """The bins of the distributions side by side, the bars of each against its own fullest bin."""
    kinds = [dict(found[name].bins) if name in found else {} for name in SIDE_BY_SIDE]
    most = [max(bins.values(), default=0) for bins in kinds]
    return [
        Bin(
            start,
            [Cell(bins.get(start, 0), percent(bins.get(start, 0), top)) for bins, top in zip(kinds, most, strict=True)],
        )
        for start in sorted({start for bins in kinds for start in bins})
    ]


section = device_section("launches", "Launches", view)
