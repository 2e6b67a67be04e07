"""Settings that the reports of both sides were not made with alike: what differs, and what it was on each side."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nsysdiag.config import OPTION_OF_SETTING, TIMES, Settings
from nsysdiag.model import Report

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
