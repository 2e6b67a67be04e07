"""Which device of one report is which of another, and the settings in which both sides differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from nsysdiag.config.settings import OPTION_OF_SETTING, TIMES, Settings
from nsysdiag.errors import NotComparableError
from nsysdiag.report import DeviceReport, Report

UNNAMED = ("", "GPU")
MOST_FILES = 3
_ONE_REDACTION = "compare the traces themselves with --redact, or redact all reports with the same --redact-key"


@dataclass(frozen=True, slots=True)
class Pair:
    """A device in each report before and in each after."""

    before: list[tuple[Report, DeviceReport]]
    after: list[tuple[Report, DeviceReport]]


def require_names(reports: Sequence[Report]) -> None:
    """Raise NotComparableError where the same name may be another thing, or the same thing has another name: numbers
    that stand for names go by the order in one report."""
    kinds = {report.settings.get("redacted", "") for report in reports}
    if "numbered" in kinds:
        raise NotComparableError(
            "a report has numbers in place of names, which are others in each report", hint=_ONE_REDACTION
        )
    if len(kinds) > 1:
        raise NotComparableError("some reports have stand-ins for names, others have not", hint=_ONE_REDACTION)


def is_keyed(report: Report) -> bool:
    """Has it hashes in place of names? Which key they are of, no report says."""
    return report.settings.get("redacted") == "keyed"


def paired(before: Sequence[Report], after: Sequence[Report], *, across_gpus: bool) -> tuple[list[Pair], list[str]]:
    """The devices that all reports have, and what is to be said of the others. Raises NotComparableError where a report
    has no device that worked, or where the GPUs are of different models and that was not asked for."""
    reports = [*before, *after]
    rows = [[device for device in report.devices if device.window_ns] for report in reports]
    for report, devices in zip(reports, rows, strict=True):
        if not devices:
            raise NotComparableError(f"{report.trace.file} has no GPU work to compare")
    keys = _common_keys(rows)
    notes = _left_out(reports, rows, keys)
    matched = [[next(device for device in devices if device.key == key) for devices in rows] for key in keys]
    if not keys:
        matched = [[devices[place] for devices in rows] for place in range(min(map(len, rows)))]
    pairs = []
    for devices in matched:
        each = list(zip(reports, devices, strict=True))
        pairs.append(Pair(each[: len(before)], each[len(before) :]))
        notes += _models(pairs[-1], across_gpus=across_gpus)
    return pairs, list(dict.fromkeys(notes))


def _common_keys(rows: Sequence[Sequence[DeviceReport]]) -> list[str]:
    """The keys that all have; none where single devices merely go by different numbers."""
    common = [device.key for device in rows[0] if all(any(each.key == device.key for each in row) for row in rows)]
    if all(len(row) == 1 for row in rows):
        return common if common else []
    return common


def _left_out(reports: Sequence[Report], rows: Sequence[Sequence[DeviceReport]], keys: list[str]) -> list[str]:
    few = min(map(len, rows))
    further = [
        [device.key for device in row if device.key not in keys] if keys else [device.key for device in row[few:]]
        for row in rows
    ]
    notes = [] if keys else ["The devices go by different numbers; they are compared in their order."]
    return notes + [
        f"{report.trace.file} has further devices, which are left out: {', '.join(more)}."
        for report, more in zip(reports, further, strict=True)
        if more
    ]


def _models(pair: Pair, *, across_gpus: bool) -> list[str]:
    rows = [*pair.before, *pair.after]
    names = sorted({device.name for _report, device in rows} - set(UNNAMED))
    if len(names) < 2:
        unnamed = dict.fromkeys(report.trace.file for report, device in rows if device.name in UNNAMED)
        return [_unnamed(list(unnamed))] if unnamed else []
    if not across_gpus:
        raise NotComparableError(
            f"the GPUs are of different models: {', '.join(names)}",
            hint="add --across-gpus to compare them all the same",
        )
    left, right = (_named(side) for side in (pair.before, pair.after))
    return [f"The GPUs are of different models: {left} before, {right} after."]


def _unnamed(files: Sequence[str]) -> str:
    more = [f"{len(files) - MOST_FILES:,} more"] if len(files) > MOST_FILES else []
    which = " and ".join([*files[:MOST_FILES], *more])
    told = "does not name its GPU" if len(files) == 1 else "do not name their GPUs"
    return f"{which} {told}: whether both sides ran on the same model is not known."


def _named(side: Sequence[tuple[Report, DeviceReport]]) -> str:
    """The models of a side, each once."""
    names = ("an unnamed one" if device.name in UNNAMED else device.name for _report, device in side)
    return " and ".join(dict.fromkeys(names))


NARROWING = ("start_ns", "end_ns", "nvtx", "iterations")
NOT_COMPARED = ("gaps", "full_hash", "timeline", "cost", "config", "redacted")
"""What these set is no part of a comparison, or is told by itself."""
NONE, GIVEN = "none", "given"
MOST_DIGITS = 6


def settings_notes(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """A sentence for each setting that some reports were made with and others not, with its values on both sides."""
    given = sorted({name for report in (*before, *after) for name in report.settings} - {*NOT_COMPARED})
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


def is_narrowed(report: Report) -> bool:
    """Was a part of the time chosen?"""
    return any(name in report.settings for name in NARROWING)


def _side(values: Sequence[dict[str, str]], key: str) -> str:
    return " or ".join(dict.fromkeys(each[key] for each in values))


def _values(name: str, text: str | None) -> dict[str, str]:
    """A setting as text, under an empty name; one of several numbers by their names. Reports hold what differs from
    the defaults."""
    default = getattr(Settings(), name, None)
    if isinstance(default, msgspec.Struct):
        told = dict(part.partition(" ")[::2] for part in text.split(", ")) if text else {}
        return {key: _number(told.get(key, str(value))) for key, value in msgspec.structs.asdict(default).items()}
    if text is None:
        return {"": ", ".join(default) if isinstance(default, tuple) and default else NONE}
    return {"": f"{text} ns" if name in TIMES else GIVEN if default is False else text}


def _number(text: str) -> str:
    return text[:MOST_DIGITS] if "." in text else text
