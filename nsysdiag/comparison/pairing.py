"""Which device of one report is which of another, and which reports and devices may be compared at all."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.causes import CAUSES
from nsysdiag.comparison.facts import SideTrace
from nsysdiag.comparison.units import OneRun
from nsysdiag.config.settings import OPTION_OF_SETTING, TIMES, Settings, disabled_causes, setting_text
from nsysdiag.fields import Sentence, SettingValue
from nsysdiag.messages import NotComparableError
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report
from nsysdiag.typed import joined, say

UNNAMED = ("", "GPU")
MOST_FILES = 3


class DevicePair(Struct, frozen=True):
    """A device in each report before and in each after."""

    before: list[tuple[Report, DeviceReport]]
    after: list[tuple[Report, DeviceReport]]


class CutAlike(Struct, frozen=True):
    """The reports of all captures, those before first, and notes. `same_work` are devices, by key, that did the same
    operations, and have no steps in common or too few for an interval."""

    reports: list[Report | WhatIf]
    notes: list[str]
    same_work: dict[str, OneRun] = {}


def require_names(reports: Sequence[Report | WhatIf]) -> None:
    """Raise NotComparableError for a redacted report: numbers that replace names follow the order in one report."""
    if are_redacted(reports):
        raise NotComparableError(
            "a redacted report has numbers instead of names, which differ between reports",
            hint="compare the traces themselves with --redact",
        )


def are_redacted(reports: Sequence[Report | WhatIf]) -> bool:
    """Has any of them pseudonyms for names? Then what its file is called may be a name, too."""
    return any("redacted" in report.settings for report in reports)


def read_from(traces: Sequence[SideTrace], files: Sequence[str | None]) -> list[SideTrace]:
    """The captures with the names of the files they were read from, if those are not the traces themselves; None if not
    read from a file."""
    return [
        replace(trace, given=file) if file and file != trace.file else trace
        for trace, file in zip(traces, files, strict=True)
    ]


def paired(
    before: Sequence[Report], after: Sequence[Report], *, across_gpus: bool
) -> tuple[list[DevicePair], list[str]]:
    """The devices that all reports have, and notes on the others. Raises NotComparableError if a report has no device
    that worked, or if GPU models differ without --across-gpus."""
    reports = [*before, *after]
    rows = [[device for device in report.devices if device.window_ns] for report in reports]
    for report, devices in zip(reports, rows, strict=True):
        if not devices:
            raise NotComparableError(f"{report.trace.file} has no GPU work to compare")
    # No key is common where single devices merely have different numbers.
    keys = [device.key for device in rows[0] if all(any(each.key == device.key for each in row) for row in rows)]
    notes = _left_out(reports, rows, keys)
    matched = [[next(device for device in devices if device.key == key) for devices in rows] for key in keys]
    if not keys:
        matched = [[devices[place] for devices in rows] for place in range(min(map(len, rows)))]
    pairs = []
    for devices in matched:
        each = list(zip(reports, devices, strict=True))
        pairs.append(DevicePair(each[: len(before)], each[len(before) :]))
        notes += _models(pairs[-1], across_gpus=across_gpus)
    return pairs, list(dict.fromkeys(notes))


def _left_out(reports: Sequence[Report], rows: Sequence[Sequence[DeviceReport]], keys: list[str]) -> list[str]:
    few = min(map(len, rows))
    further = [
        [device.key for device in row if device.key not in keys] if keys else [device.key for device in row[few:]]
        for row in rows
    ]
    notes = [] if keys else ["The devices have different numbers; they are compared in order."]
    return notes + [
        f"{report.trace.file} has more devices, which are left out: {', '.join(more)}."
        for report, more in zip(reports, further, strict=True)
        if more
    ]


def _models(pair: DevicePair, *, across_gpus: bool) -> list[str]:
    rows = [*pair.before, *pair.after]
    names = sorted({device.name for _report, device in rows} - set(UNNAMED))
    if len(names) < 2:
        unnamed = dict.fromkeys(report.trace.file for report, device in rows if device.name in UNNAMED)
        if not unnamed:
            return []
        more = [f"{len(unnamed) - MOST_FILES:,} more"] if len(unnamed) > MOST_FILES else []
        which = " and ".join([*list(unnamed)[:MOST_FILES], *more])
        are = "does not name its GPU" if len(unnamed) == 1 else "do not name their GPUs"
        return [f"{which} {are}: it is unknown whether both sides ran on the same model."]
    refuse_models(names, across_gpus=across_gpus)
    left, right = (_named(side) for side in (pair.before, pair.after))
    return [f"The GPUs are of different models: {left} before, {right} after."]


def refuse_models(names: Sequence[str], *, across_gpus: bool) -> None:
    """Raise NotComparableError for several models, unless they may differ."""
    if len(names) > 1 and not across_gpus:
        raise NotComparableError(
            f"the GPUs are of different models: {', '.join(names)}", hint="add --across-gpus to compare them anyway"
        )


def _named(side: Sequence[tuple[Report, DeviceReport]]) -> str:
    """The models of a side, each once."""
    names = ("an unnamed one" if device.name in UNNAMED else device.name for _report, device in side)
    return " and ".join(dict.fromkeys(names))


NOT_COMPARED = "not_compared"
CAPTURED = {
    "cuda-api": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "os-runtime": "OSRT_API",
    "scheduling": "SCHED_EVENTS",
    "cpu-samples": "COMPOSITE_EVENTS",
    "gpu-context-switch": "GPU_CONTEXT_SWITCH_EVENTS",
}
"""Evidence that is there or not by how a trace was captured, and its table. Other tables are empty where nothing of
their kind happened."""
WHOLE_GAPS, ROOT = "gap", "root"
"""The sides of causes that take gaps before those of any other side see them, and of those that waits lead to."""


def uncompared(before: Sequence[Report], after: Sequence[Report]) -> tuple[list[str], list[str]]:
    """The causes for which some captures lack evidence, with all later causes on the same side of a gap, which get that
    time instead; and the notes on them."""
    evidence = [
        {each.id for each in report.trace.capabilities if each.available} & CAPTURED.keys()
        for report in (*before, *after)
    ]
    held = evidence[: len(before)], evidence[len(before) :]
    kinds = _differing(evidence)
    tables = {CAPTURED[kind] for kind in kinds}
    disabled = _differing([disabled_causes(report.settings) for report in (*before, *after)])
    first = {cause.id for cause in CAUSES.values() if tables & set(cause.tables)} | set(disabled)
    if disabled:  # a wait that has another name is not followed to its root
        first |= {cause.id for cause in CAUSES.values() if cause.side == ROOT}
    found = _behind(first)
    notes = [
        f"Only {_holders(*held, kind)} {kind} evidence: causes that need it are compared as one." for kind in kinds
    ]
    if disabled:
        notes.append(
            f"The reports were made with different causes disabled: {', '.join(disabled)}, and the causes that get "
            "their time instead, are compared as one."
        )
    return [cause for cause in CAUSES if cause in found], notes


def _differing(held: Sequence[set[str]]) -> list[str]:
    """What some have and others have not."""
    return sorted(set().union(*held) - held[0].intersection(*held))


def _behind(first: set[str]) -> set[str]:
    """These causes, and all that see a gap after one of them."""
    found: set[str] = set()
    whole = False
    for side in dict.fromkeys(cause.side for cause in CAUSES.values()):
        reached = whole
        for cause in (cause for cause in CAUSES.values() if cause.side == side):
            reached = reached or cause.id in first
            found |= {cause.id} if reached else set()
        whole = whole or (reached and side == WHOLE_GAPS)
    return found


def _holders(before: Sequence[set[str]], after: Sequence[set[str]], kind: str) -> str:
    """`the captures before have`, or `some captures have` where those of a side differ."""
    left, right = ([kind in held for held in side] for side in (before, after))
    if all(left) and not any(right):
        return "the captures before have"
    return "the captures after have" if all(right) and not any(left) else "some captures have"


NARROWING = ("start_ns", "end_ns", "nvtx", "iterations")
NO_PART = ("gaps", "full_hash", "timeline", "cost", "config", "redacted", "reference_step_ns", "flops_per_step")
"""What these set is no part of a comparison, or has a note of its own."""
MOST_DIGITS = 6


def settings_notes(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """A sentence for each setting that some reports were made with and others not, with its values on both sides."""
    given = sorted({name for report in (*before, *after) for name in report.settings} - {*NO_PART})
    notes = []
    for name in given:
        sides = [[_values(name, report.settings.get(name)) for report in side] for side in (before, after)]
        differing = [
            f"{each} {_side(sides[0], each)} before, {_side(sides[1], each)} after".strip()
            for each in sorted({key for side in sides for values in side for key in values})
            if len({values[each] for side in sides for values in side}) > 1
        ]
        if differing:
            option = OPTION_OF_SETTING.get(name, name)
            notes.append(f"The reports were made with different settings, {option}: {'; '.join(differing)}.")
    return notes


def _side(values: Sequence[dict[str, str]], key: str) -> str:
    return " or ".join(dict.fromkeys(each[key] for each in values))


def _values(name: str, value: SettingValue) -> dict[str, str]:
    """A setting as text under an empty name; of a setting of several numbers each one under its own. Reports hold only
    what differs from the defaults."""
    default = getattr(Settings(), name, None)
    if isinstance(default, msgspec.Struct):
        given = value if isinstance(value, dict) else {}
        numbers = {key: given.get(key, plain) for key, plain in msgspec.structs.asdict(default).items()}
        return {
            key: str(number)[:MOST_DIGITS] if isinstance(number, float) else str(number)
            for key, number in numbers.items()
        }
    if value is None:
        return {"": ", ".join(default) if isinstance(default, tuple) and default else "none"}
    text = setting_text(name, value)
    return {"": f"{text} ns" if name in TIMES else "given" if default is False else text}


def window_notes(before: Sequence[Report], after: Sequence[Report]) -> list[Sentence]:
    """A note on windows of different kinds, where no part of the time was chosen."""
    if any(name in report.settings for report in (*before, *after) for name in NARROWING):
        return []
    reasons = sorted(
        {device.window.reason for report in (*before, *after) for device in report.devices}, key=typed.plain
    )
    return [say("The windows follow different rules: {}.", joined("; ", reasons))] if len(reasons) > 1 else []


def capture_notes(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """Captures that are the same trace, and the same time of it: nothing that they have in common is measured twice.
    And a single capture a side."""
    notes = []
    seen: dict[object, str] = {}
    for report in (*before, *after):
        windows = tuple(tuple(map(tuple, device.window.parts)) for device in report.devices)
        what = (report.trace.size_bytes, report.trace.fingerprint, windows)
        if what in seen:
            notes.append(f"{seen[what]} and {report.trace.file} are the same capture, not two measurements.")
        seen.setdefault(what, report.trace.file)
    if len(before) == len(after) == 1:
        notes.append("One capture per side: the interval does not include the variation between runs.")
    return notes
