"""All invariants by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.diagnosis.report_json import Json, diagnosis_of, phases_of

Invariant = Callable[[Json], Iterator[str]]
INVARIANTS: dict[str, Invariant] = {}


def invariant(function: Invariant) -> Invariant:
    """Make an invariant of a function that yields what is broken, in words."""
    INVARIANTS[function.__name__] = function
    return function


def broken(report: Json) -> list[str]:
    """Everything that is broken in a report, each with the invariant's name; a report without diagnosis is an error."""
    diagnosis_of(report), phases_of(report)
    return [f"{name}: {what}" for name, function in INVARIANTS.items() for what in function(report)]
