"""Every text of a report says what it holds: a field that nobody thought of fails here instead of leaking names."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from nsysdiag.fields import KernelName, NsByLabel, OwnText, RangeName, RowsByTable, TextKind, fields_of, leaves
from nsysdiag.ranks.report import RanksReport
from nsysdiag.record import Record, records_in, rewritten, text_of
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from tests.output import samples

_IN_SENTENCES = (TextKind.MESSAGE, TextKind.METRIC)
"""Kinds of names that stand in no field of their own."""


def all_records() -> list[type[Record]]:
    """Every record that a report of one trace or of ranks, or a prediction, can hold."""
    found: list[type[Record]] = [Report, RanksReport, WhatIf]
    for record in found:
        inside = {each for hint in fields_of(record).values() for each in records_in(hint)}
        found += sorted(inside - set(found), key=lambda each: each.__name__)
    return found


def test_every_field_with_text_says_what_it_holds() -> None:
    texts = [text_of(record, name) for record in all_records() for name in fields_of(record)]
    assert {*texts, *_IN_SENTENCES} == {None, *TextKind}


class Classified(Record, frozen=True):
    plain: KernelName | None
    listed: list[RangeName]
    keys: dict[OwnText, int]
    tables: RowsByTable
    labels: NsByLabel
    number: int


class Unclassified(Record, frozen=True):
    known: OwnText
    unknown: str


class Mixed(Record, frozen=True):
    both: dict[KernelName, RangeName]


class Untyped(Record, frozen=True):
    anything: Any


def test_what_the_texts_of_a_field_hold() -> None:
    found = {name: text_of(Classified, name) for name in fields_of(Classified)}
    assert found == {
        "plain": TextKind.KERNEL,
        "listed": TextKind.RANGE,
        "keys": TextKind.OWN,
        "tables": TextKind.TABLE,
        "labels": TextKind.LABELS,
        "number": None,
    }


def test_the_outermost_marker_counts() -> None:
    assert [leaf.text for leaf in leaves(Annotated[list[KernelName], TextKind.RANGE])] == [TextKind.RANGE]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (Unclassified(known="a", unknown="secret"), "Unclassified.unknown"),
        (Mixed(both={"a": "b"}), "Mixed.both"),
        (Untyped(anything="secret"), "Untyped.anything"),
    ],
)
def test_a_field_that_does_not_say_it_is_an_error(record: Record, field: str) -> None:
    """Nothing that is not classified is passed on, even where the visit would keep it."""
    with pytest.raises(TypeError, match=field):
        rewritten(record, lambda _text, _record, value: value)


def test_a_visit_that_changes_nothing_gives_the_same_report() -> None:
    report = samples.one_device()
    assert rewritten(report, lambda _text, _record, value: value) == report
