"""The base of all records that a report is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for JSON that is no record: other keys and types, bytes that are no UTF-8, endless nesting."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all records: immutable, built by keyword."""


class Column(NamedTuple):
    """A packed column: `values` numbers that take at most `width` bytes each once unpacked."""

    text: str
    values: int
    width: int


class Packed(Record, frozen=True):
    """A record that holds packed columns."""

    def columns(self) -> Iterable[Column]:
        """Its packed columns, without those that are left empty because they say nothing."""
        raise NotImplementedError


def to_json(record: Record) -> bytes:
    """As UTF-8 JSON, keys sorted, indented by two, one final newline: same record, same bytes."""
    return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=2) + b"\n"


def json_schema(kind: type[Record]) -> bytes:
    """The JSON Schema of such a record once saved; the copies in nsysdiag/data are made from it."""
    schema = _settled(msgspec.json.schema(kind))
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2) + b"\n"


def _settled(schema: Any) -> Any:
    """With null as the last of alternatives: versions of msgspec differ in where they put it."""
    if isinstance(schema, list):
        return [_settled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    settled = {key: _settled(value) for key, value in schema.items()}
    if "anyOf" in settled:
        settled["anyOf"].sort(key=lambda each: each == {"type": "null"})
    return settled
