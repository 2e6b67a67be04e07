"""Every text of a report is classified: a field that nobody thought of fails here instead of leaking names."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_type_hints

import pytest

from nsysdiag.ranks.report import RanksReport
from nsysdiag.report import Report
from nsysdiag.share.redaction.fields import _FIELDS, FIELDS
from nsysdiag.share.redaction.walk import has_text, records_in, rewritten
from tests.output import samples

if TYPE_CHECKING:
    from nsysdiag.record import Record


def all_records() -> list[type[Record]]:
    """Every record that a report of one trace or of ranks can hold."""
    found: list[type[Record]] = [Report, RanksReport]
    for record in found:
        inside = {each for hint in get_type_hints(record).values() for each in records_in(hint)}
        found += sorted(inside - set(found), key=lambda each: each.__name__)
    return found


def text_fields() -> set[str]:
    return {
        f"{record.__name__}.{name}"
        for record in all_records()
        for name, hint in get_type_hints(record).items()
        if has_text(hint)
    }


def test_every_field_with_text_is_classified() -> None:
    assert text_fields() - set(FIELDS) == set(), "say in redaction/fields.py what these fields hold"


def test_no_field_is_classified_that_is_gone() -> None:
    assert set(FIELDS) - text_fields() == set()


def test_no_field_is_classified_twice() -> None:
    assert sum(len(fields.split()) for fields in _FIELDS.values()) == len(FIELDS)


def test_names_of_records_are_unique() -> None:
    """Fields go by the name of their record."""
    names = [record.__name__ for record in all_records()]
    assert sorted(names) == sorted(set(names))


def test_a_field_without_a_class_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is not classified is passed on."""
    from nsysdiag.share.redaction import walk

    monkeypatch.delitem(FIELDS, "Slice.evidence")
    walk._plan.cache_clear()
    with pytest.raises(KeyError, match=r"Slice\.evidence"):
        rewritten(samples.one_device(), lambda _text, _record, value: value)
    walk._plan.cache_clear()


def test_a_visit_that_changes_nothing_gives_the_same_report() -> None:
    report = samples.one_device()
    assert rewritten(report, lambda _text, _record, value: value) == report
