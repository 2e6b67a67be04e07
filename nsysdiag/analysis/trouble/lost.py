"""Sentences about time lost in several ways: all of it, then each way, most first."""

from __future__ import annotations

from nsysdiag.analysis.trouble.given import Given
from nsysdiag.units import format_ns, format_share

LEAST_NAMED = 0.01


def lost(given: Given, what: str, ns: int) -> str:
    """How much of the judged time it is, and in ns."""
    return f"{format_share(given.share(ns), 1)} of the time ({format_ns(ns)}): {what}."


def lost_in_all(given: Given, parts: dict[str, int]) -> list[str]:
    """The sum where there are several parts of at least a hundredth of the time, then these."""
    named = sorted(((ns, what) for what, ns in parts.items() if given.share(ns) >= LEAST_NAMED), reverse=True)
    said = [lost(given, what, ns) for ns, what in named]
    return [lost(given, f"most of it {named[0][1]}", sum(parts.values())), *said] if len(said) > 1 else said
