"""The timeline of all devices: the whole time in few steps for pages without scripts, and what scripts put there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import summed
from nsysdiag.document import drawings as d
from nsysdiag.document import words
from nsysdiag.document.blocks import Chart, Section, SectionScope
from nsysdiag.document.packed import unpack_lanes
from nsysdiag.document.view import WORK, Causes, Context
from nsysdiag.formats.html.section import View, drawn_section
from nsysdiag.formats.html.timeline_data import DrawnGaps, timelines
from nsysdiag.units import format_count, format_exact_ns, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport
    from nsysdiag.timeline.facts import TimelineLevel, TimelineLevels

MANY_DEVICES, MOST_STILLS, MOST_KEYS = 8, 24, 6
LABELS = {"compute": "Compute", "communication": "Communication", "copies": "Copies", "idle": "Idle"}
LABEL = "What each GPU did over time; idle time has the colour of its leading cause"


def still_lanes(levels: TimelineLevels, causes: Causes, devices: int) -> list[d.DrawnLane]:
    """The lanes of a device that hold anything. Raises InputError if the report is damaged."""
    level = levels.levels[-1]
    step = 2 if devices > MANY_DEVICES and level.buckets % 2 == 0 else 1
    return level_lanes(level, levels.cause_ids, causes, step)


def level_lanes(level: TimelineLevel, cause_ids: list[str], causes: Causes, step: int = 1) -> list[d.DrawnLane]:
    """The lanes of one level that hold anything, of each `step` buckets the fullest. Raises InputError if the level is
    damaged."""
    columns = {name: column.reshape(-1, step) for name, column in unpack_lanes(level).items()}
    lanes = []
    for name, label in LABELS.items():
        heights = columns[name].max(axis=1)
        if not heights.any():
            continue
        areas = [d.Area(label, name, "", heights)]
        if name == "idle":
            first = columns["cause"][:, 0]
            present = [number for number in distinct_values(first[heights > 0]).tolist() if number < len(cause_ids)]
            shown = [(causes[cause_ids[number]], np.where(first == number, heights, 0)) for number in present]
            areas = [d.Area(cause.title, "", d.safe_color(cause.color), held) for cause, held in shown]
        lanes.append(d.DrawnLane(label, len(heights), areas))
    return lanes


def timeline_view(context: Context) -> View:
    """The drawing of the devices, which scripts replace by another one."""
    drawn = timelines(context.report)
    stills = [
        d.LaneGroup(
            device.key,
            levels.start_ns,
            levels.end_ns,
            still_lanes(levels, context.causes, len(drawn)),
            note=device.name,
        )
        for device, levels in drawn[:MOST_STILLS]
    ]
    return {
        "charts": [Chart(d.DrawnLanes(stills), LABEL, legend=_legend(context, stills))],
        "more": len(drawn) - MOST_STILLS,
        "exact": partial(_exact, drawn),
    }


def _legend(context: Context, stills: list[d.LaneGroup]) -> list[d.LegendEntry]:
    """What the colours mean: work, then the causes with most time over all devices."""
    total = summed(device.ledger for device in context.report.devices)
    present = {lane.label for still in stills for lane in still.lanes}
    work = [replace(d.entry_of(id, context.causes), label=LABELS[part]) for id, (part, _) in WORK.items()]
    causes = sorted((each for each in total if total[each]), key=lambda each: (-total[each], each))
    return d.by_bottleneck(
        [*(each for each in work if each.label in present), *(d.entry_of(each, context.causes) for each in causes)]
    )


def _exact(drawn: list[tuple[DeviceReport, TimelineLevels]], gaps: list[DrawnGaps]) -> list[str]:
    """What is exact and what is thinned; devices of which the same is to be said share a sentence."""
    said: dict[str, list[str]] = {}
    for (device, levels), its in zip(drawn, gaps, strict=True):
        for sentence in (_gaps_sentence(its), *_lane_sentences(levels)):
            said.setdefault(sentence, []).append(device.key)
    found = []
    for sentence, keys in said.items():
        more = " and more" if len(keys) > MOST_KEYS else ""
        found.append(sentence if len(keys) == len(drawn) else f"{', '.join(keys[:MOST_KEYS])}{more}: {sentence}")
    return found


def _gaps_sentence(gaps: DrawnGaps) -> str:
    if gaps.all:
        return "Every gap is exact at every level."
    return (
        f"Of {format_count(gaps.total)} gaps the {format_count(gaps.longest)} longest, all of "
        f"{format_exact_ns(gaps.threshold)} or more, are exact at every level; shorter ones are shares of the time."
    )


def _lane_sentences(levels: TimelineLevels) -> Iterator[str]:
    span = (levels.start_ns, levels.end_ns)
    for what, parts, (start_ns, end_ns) in (
        ("Operations", levels.exact_operations, span),
        ("Threads", levels.exact_host, levels.host_span or span),
    ):
        covered, whole = sum(end - start for start, end in parts), end_ns - start_ns
        if covered < whole and any((lane.thread is None) == (what == "Operations") for lane in levels.lanes):
            windows, share = words.counted(len(parts), "window"), format_share(covered, whole)
            yield (
                f"{what} are exact in {windows} around the gaps that matter most, {share} of the time; elsewhere they "
                "are shares of it."
            )
    if levels.threads_left_out:
        yield f"{words.counted(levels.threads_left_out, 'more launching thread')} not drawn."


def timeline_section(context: Context) -> Section | None:
    """From the first to the last operation of all devices; None without a timeline."""
    drawn = [levels for _device, levels in timelines(context.report)]
    if not drawn:
        return None
    start, end = min(each.start_ns for each in drawn), max(each.end_ns for each in drawn)
    run = SectionScope("run", f"{format_ns(end - start)} from {words.instant(start)} to {words.instant(end)}")
    return drawn_section("timeline", "Timeline", partial(timeline_view, context), scope=run)
