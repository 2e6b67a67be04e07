"""The timeline of all devices: a drawing for everybody, and what the scripts put in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.output import words
from nsysdiag.output.bars import LegendEntry
from nsysdiag.output.figures import safe_color
from nsysdiag.output.sections.section import Page, ReportSection, View
from nsysdiag.output.timeline.data import timeline_data, timelines
from nsysdiag.output.timeline.gaps import drawn_gaps
from nsysdiag.output.timeline.still import StillLane, still_lanes
from nsysdiag.units import format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport
    from nsysdiag.model_timeline import TimelineLevels

MOST_STILLS = 24


@dataclass(frozen=True, slots=True)
class Still:
    """The drawing of one device and the moments at both of its ends."""

    label: str
    lanes: list[StillLane]
    begin: str
    end: str


def view(page: Page) -> View | None:
    """The timeline, left out where the report holds none."""
    drawn = timelines(page.report)
    if not drawn:
        return None
    return {
        "stills": [_still(page, device, levels, len(drawn)) for device, levels in drawn[:MOST_STILLS]],
        "more": len(drawn) - MOST_STILLS,
        "legend": _legend(page),
        "exact": [sentence for device, levels in drawn for sentence in _exact(device, levels, len(drawn))],
        "data": timeline_data(page.report, page.causes),
    }


def _still(page: Page, device: DeviceReport, levels: TimelineLevels, devices: int) -> Still:
    label = f"{device.key} {device.name}"
    lanes = still_lanes(levels, page.causes, devices)
    return Still(label, lanes, words.instant(levels.start_ns), words.instant(levels.end_ns))


def _legend(page: Page) -> list[LegendEntry]:
    """What the colours mean: work, then the causes with most time over all devices."""
    total: dict[str, int] = {}
    for device in page.report.devices:
        for cause, ns in device.ledger.items():
            total[cause] = total.get(cause, 0) + ns
    work = [("Compute", "compute"), ("Communication", "communication"), ("Copies", "copies")]
    return [LegendEntry(label, part, "") for label, part in work] + [
        LegendEntry(page.causes.title(cause), "", safe_color(page.causes[cause].color))
        for cause in sorted((each for each in total if total[each]), key=lambda each: (-total[each], each))
    ]


def _exact(device: DeviceReport, levels: TimelineLevels, devices: int) -> list[str]:
    """What is exact on a device and what is thinned."""
    gaps = drawn_gaps(device, devices)
    found = [f"{device.key}: {_gaps_sentence(gaps.count, gaps.total, gaps.threshold)}"]
    whole = levels.end_ns - levels.start_ns
    for what, parts in (("operations", levels.exact_operations), ("threads", levels.exact_host)):
        covered = sum(end - start for start, end in parts)
        if covered < whole and any((lane.thread is None) == (what == "operations") for lane in levels.lanes):
            found.append(
                f"{device.key}: {what} are exact in {words.counted(len(parts), 'window')} around the gaps that matter "
                f"most, {format_share(covered, whole)} of the time; elsewhere they are shares of the time."
            )
    if levels.threads_left_out:
        found.append(f"{device.key}: {words.counted(levels.threads_left_out, 'more launching thread')} not drawn.")
    return found


def _gaps_sentence(count: int, total: int, threshold: int) -> str:
    if not total:
        return "no gaps."
    if count == total:
        return f"all {format_count(total)} gaps are exact at every level."
    return (
        f"the {format_count(count)} longest of {format_count(total)} gaps, all of {format_ns(threshold)} or more, are "
        "exact at every level; shorter ones are shares of the time."
    )


SECTION = ReportSection("timeline", "Timeline", view)
