"""Goes through all records of a report and hands each field with text to one function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec.structs import replace

from nsysdiag.record import Record
from nsysdiag.share.redaction.fields import FIELDS, Text

Visit = Callable[[Text, Record, Any], Any]
"""What a field with text becomes: what it holds, its record, and its value."""
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
    hints = get_type_hints(record)
    rows = [
        (name, FIELDS[f"{record.__name__}.{name}"] if has_text(hint) else None, records_in(hint))
        for name, hint in hints.items()
    ]
    return [(name, text, bool(records)) for name, text, records in rows if text not in (None, Text.OWN) or records]


def has_text(hint: Any) -> bool:
    """Whether a field of this type can hold text outside of other records."""
    return str in _leaves(hint)


def records_in(hint: Any) -> set[type[Record]]:
    """The records that a field of this type can hold."""
    return {each for each in _leaves(hint) if isinstance(each, type) and issubclass(each, Record)}


def _leaves(hint: Any) -> list[Any]:
    if get_origin(hint) is None:
        return [hint]
    return [leaf for part in get_args(hint) for leaf in _leaves(part)]
