"""Goes through all records of a report and hands each field with text to one function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from msgspec.structs import replace

from nsysdiag.fields import Text, fields_of, leaves
from nsysdiag.record import Record

Visit = Callable[[Text, Record, Any], Any]
"""A function of the kind of text of a field, its record and its value; returns the new value."""
R = TypeVar("R", bound=Record)


def rewritten(record: R, visit: Visit) -> R:
    """The record with every field of text as `visit` makes it, those of the records inside it too, in order."""
    changed = {}
    for name, text, nested in _plan(type(record)):
        value = getattr(record, name)
        new = value if text is None or text is Text.OWN or value is None else visit(text, record, value)
        new = _within(new, visit) if nested else new
        if new is not value:
            changed[name] = new
    return replace(record, **changed) if changed else record


def _within(value: Any, visit: Visit) -> Any:
    if isinstance(value, Record):
        return rewritten(value, visit)
    if isinstance(value, list):
        return [_within(each, visit) for each in value]
    if isinstance(value, dict):
        return {key: _within(each, visit) for key, each in value.items()}
    return value


@cache
def _plan(record: type[Record]) -> list[tuple[str, Text | None, bool]]:
    """The fields that matter: what text each holds, and whether there are records inside."""
    rows = [(name, text_of(record, name), bool(records_in(hint))) for name, hint in fields_of(record).items()]
    return [(name, text, nested) for name, text, nested in rows if text not in (None, Text.OWN) or nested]


def text_of(record: type[Record], field: str) -> Text | None:
    """The kind of text of a field, outside nested records; None without text. Raises TypeError if markers are missing
    or contradict each other, so that no name escapes redaction."""
    found = {leaf.text for leaf in leaves(fields_of(record)[field]) if leaf.kind in (str, Any, object)}
    if None in found or len(found) > 1:
        raise TypeError(f"{record.__name__}.{field}: its type must say what its text holds, see nsysdiag.fields.Text")
    return next(iter(found), None)


def records_in(hint: Any) -> set[type[Record]]:
    """The records that a field of this type can hold."""
    return {leaf.kind for leaf in leaves(hint) if isinstance(leaf.kind, type) and issubclass(leaf.kind, Record)}
