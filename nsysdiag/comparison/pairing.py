"""Which device of one report is which of another, and which reports and devices may be compared at all."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison.facts import SideTrace
from nsysdiag.comparison.units import OneRun
from nsysdiag.messages import NotComparableError
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report

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
    if not across_gpus:
        raise NotComparableError(
            f"the GPUs are of different models: {', '.join(names)}",
            hint="add --across-gpus to compare them anyway",
        )
    left, right = (_named(side) for side in (pair.before, pair.after))
    return [f"The GPUs are of different models: {left} before, {right} after."]


def _named(side: Sequence[tuple[Report, DeviceReport]]) -> str:
    """The models of a side, each once."""
    names = ("an unnamed one" if device.name in UNNAMED else device.name for _report, device in side)
    return " and ".join(dict.fromkeys(names))
