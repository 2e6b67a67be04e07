"""The words and signs of a comparison: what a change is called, and how its numbers read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nsysdiag.comparison import facts
from nsysdiag.document.blocks import Tone
from nsysdiag.document.columns import StatusMark
from nsysdiag.document.names import brief, clip
from nsysdiag.units import format_ns, format_share, format_signed_ns, format_signed_share

UNIT_NAME, MOST_FILES = 60, 3
GONE, NEW, NOTHING = "gone", "new", "–"
ELSEWHERE = "Kernels, gap groups and findings of each device are in the page."
RENAMING = "Was the idle time removed, or did only its cause change?"


def _marks(*words: str) -> dict[str, StatusMark]:
    """The marks of what improved, regressed and stayed the same, in these words."""
    verdicts, tones = (facts.IMPROVED, facts.REGRESSED, facts.SAME), ("better", "worse", "same")
    rows = zip(verdicts, "▼▲=", words, tones, strict=True)
    return {verdict: StatusMark(icon, word, tone) for verdict, icon, word, tone in rows}


_VERDICTS = _marks("Improved", "Regressed", "No difference") | {facts.MIXED: StatusMark("▲▼", "Mixed", "mixed")}
_PROMISES = _marks("Predicted to improve", "Predicted to regress", "No difference predicted")
_KEPT = _marks("Better than predicted", "Worse than predicted", "As predicted")
_CHANGES = _marks("better", "worse", "same")
_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "mixed": "note", "unknown": "note"}
_STATUSES = {
    facts.ADDED: "new",
    facts.RECAUSED: "other cause",
    facts.NOT_COMPARED: "not compared",
    facts.UNSEEN_BEFORE: "not recorded before",
    facts.UNSEEN_AFTER: "not recorded after",
}
_WORK = {
    facts.KERNELS: "Kernels in a {}",
    facts.LAUNCHES: "Launches in a {}",
    facts.BYTES: "Copied in a {}",
    facts.THREADS: "Threads of the same kernels",
}
_RENAMINGS = {"removed": "better", "renamed": "worse", "partly": "mixed"}


def tone(mark: StatusMark) -> Tone:
    """The tone of a text that says it."""
    return _TONES.get(mark.tone, "plain")


def verdict_mark(verdict: str) -> StatusMark:
    """The verdict on a device, or on all."""
    return _VERDICTS.get(verdict, StatusMark("?", "Unknown", "unknown"))


def outcome_mark(comparison: facts.Comparison) -> StatusMark:
    """The verdict over all devices; with a prediction on one side, what it says of it."""
    before, after = (any(trace.prediction for trace in side) for side in (comparison.before, comparison.after))
    marks = _PROMISES if after and not before else _KEPT if before and not after else {}
    return marks.get(comparison.verdict) or verdict_mark(comparison.verdict)


def interval_title(unit: facts.Unit | None) -> str:
    """What the interval of a change is: chance, or the bounds of a prediction."""
    return "Bounds" if unit is not None and unit.kind in facts.PREDICTED else "95% interval"


def elsewhere(comparison: facts.Comparison) -> str:
    """Where the rest about each of several devices is; a prediction has no more."""
    predicted = any(device.unit.kind in facts.PREDICTED for device in comparison.devices)
    return "" if predicted or len(comparison.devices) < 2 else ELSEWHERE


def change_mark(verdict: str) -> StatusMark:
    """The verdict on one time: less of it is better."""
    return _CHANGES.get(verdict, StatusMark("?", "unknown", "unknown"))


def renaming_tone(verdict: str) -> str:
    """The colour of the sentence about renaming."""
    return _RENAMINGS.get(verdict, "same")


def status_word(status: str) -> str:
    """Which side has it."""
    return _STATUSES.get(status, status)


def interval_ns(change: facts.Change) -> str:
    """The interval of a change as times: `-527 µs to -515 µs`; a dash if there is none."""
    if change.low_ns is None or change.high_ns is None:
        return NOTHING
    return f"{format_signed_ns(change.low_ns)} to {format_signed_ns(change.high_ns)}"


def interval_share(change: facts.Change) -> str:
    """The interval of a change as shares of the time before."""
    if change.low_ns is None or change.high_ns is None or not change.before_ns:
        return NOTHING
    return " to ".join(format_signed_share(ns, change.before_ns) for ns in (change.low_ns, change.high_ns))


def change_label(change: facts.Change) -> str:
    """A change as time and share: `-521 µs (-33.2%)`."""
    share = f" ({format_signed_share(change.change_ns, change.before_ns)})" if change.before_ns else ""
    return f"{format_signed_ns(change.change_ns)}{share}"


def time_label(ns: int) -> str:
    """A time of one side; a dash for none."""
    return format_ns(ns) if ns else NOTHING


def change_of_whole(change_ns: int, whole: int) -> str:
    """A part's change as a share of the whole: `-31.2%`."""
    return format_signed_share(change_ns, whole) if change_ns else "="


def account_mark(change_ns: int, *, decided: bool) -> StatusMark:
    """More or less time of a part: a gain or a loss if the comparison has `decided` that."""
    if change_ns < 0:
        return StatusMark("▼", "less", "better" if decided else "unknown")
    return StatusMark("▲", "more", "worse" if decided else "unknown")


def work_title(id: str, unit: facts.Unit) -> str:
    """What a step, or the run, has so many of."""
    return _WORK[id].format(unit_name(unit)) if id in _WORK else id


def unit_name(unit: facts.Unit) -> str:
    """What is compared, inside a sentence: a step alone if there are whole ones."""
    if unit.kind in ("iterations", "step") and not unit.part_of_step:
        return "step"
    return "run" if unit.same_work else "window" if unit.kind == "window" else "unit of work"


def length_sentence(device: facts.DeviceComparison) -> str:
    """What became of the length, in numbers."""
    change, interval = device.length, interval_share(device.length)
    times = f"{format_ns(change.before_ns)} before, {format_ns(change.after_ns)} after: {change_label(change)}"
    if device.unit.kind in facts.PREDICTED:
        return f"{times}, {f'bounds {interval}' if interval != NOTHING else 'without bounds'}."
    sure = f"95% interval {interval}" if interval != NOTHING else "no interval: too little repeats"
    if change.low_ns is not None and change.low_ns == change.high_ns:
        sure = "no interval: all of a side take equally long"
    share = f" ({format_share(change.least_ns, change.before_ns)})" if change.before_ns else ""
    return f"{times}, {sure}; {format_ns(change.least_ns)}{share} or less would not count."


def unit_sentence(unit: facts.Unit) -> str:
    """What is compared, and how often it repeats on each side."""
    before, after = (clip(brief(name), UNIT_NAME) for name in (unit.name_before, unit.name_after))
    if unit.kind in facts.PREDICTED:
        what, by = ("a step" if unit.kind == "step" else "the whole window, as it is"), ""
    elif unit.kind == "iterations":
        what = "an iteration"
        by = f" by “{before}”" if before and before == after else ""
    else:
        part = "the judged steady phases" if unit.kind == "phases" else "the whole window"
        what, by = f"{part}, for equal numbers of runs of the kernels that both sides share", ""
    scale = "" if unit.scale == 1 else f" {unit.scale:,.4g} after do the work of one before."
    return f"Compared: {what}{by}, mean of {unit.count_before:,} before and {unit.count_after:,} after.{scale}"


def noise_sentence(device: facts.DeviceComparison) -> str:
    """How far a side is from itself; empty if chance explains it."""
    if not device.noise:
        return ""
    return f"A side drifts by {format_share(device.noise, 1)} from its first half to its second."


def workload_sentence(device: facts.DeviceComparison) -> str:
    """The operations of a unit of work if they are the same on both sides; else a note of the device says so."""
    if not device.workload or any(row.changed for row in device.workload):
        return ""
    # `18`, or `119 and 117.1` if a few operations more or less change nothing.
    counts = [
        f"{row.id} {' and '.join(dict.fromkeys(f'{count:,.4g}' for count in (row.before, row.after)))}"
        for row in device.workload
    ]
    return f"The same workload, operations for a unit of work: {'; '.join(counts)}."


def count_label(count: float) -> str:
    """How often something comes for a unit of work."""
    if not count:
        return NOTHING
    return f"{count:,.0f}" if count >= 1000 else f"{count:.3g}"


def metric_label(row: facts.MetricChange, value: float | None) -> str:
    """A number in its unit; a dash if a side cannot tell."""
    if value is None:
        return NOTHING
    if row.unit == "ns":
        return format_ns(round(value))
    return format_share(value, 1) if row.unit == "share" else f"{value:,.4g}"


def metric_change(row: facts.MetricChange) -> str:
    """The difference of a number, of shares in percentage points; a dash if a side cannot tell."""
    if row.before is None or row.after is None:
        return NOTHING
    change = row.after - row.before
    if row.unit == "share":
        return f"{100 * change:+.1f} points" if abs(change) >= 0.0005 else "="
    return "=" if not change else format_signed_share(change, row.before)


def files_label(traces: Sequence[facts.SideTrace]) -> str:
    """The files of a side; of many the first ones and a number."""
    more = f" and {len(traces) - MOST_FILES:,} more" if len(traces) > MOST_FILES else ""
    named = (f"{trace.file}{' (predicted)' if trace.prediction else ''}" for trace in traces[:MOST_FILES])
    return ", ".join(named) + more


def warnings(comparison: facts.Comparison) -> list[str]:
    """What is wrong with the traces, each with its side and file."""
    return [f"{side}, {trace.file}: {warning}" for side, trace in traces_of(comparison) for warning in trace.warnings]


class TraceRow(NamedTuple):
    """A capture with its side."""

    side: str
    trace: facts.SideTrace


def traces_of(comparison: facts.Comparison) -> list[TraceRow]:
    """The captures of both sides."""
    sides = (("before", comparison.before), ("after", comparison.after))
    return [TraceRow(side, trace) for side, traces in sides for trace in traces]
