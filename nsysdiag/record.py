"""The base of all records that a report is made of."""

from __future__ import annotations

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for JSON that is no record: other keys and types, bytes that are no UTF-8, endless nesting."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all records: immutable, built by keyword."""


def to_saved(record: Record) -> bytes:
    """As UTF-8 JSON, keys sorted, indented by two, one final newline: same record, same bytes."""
    return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=2) + b"\n"


def schema_of(kind: type[Record]) -> bytes:
    """The JSON Schema of such a record once saved; the copies in nsysdiag/data are made from it."""
    schema = msgspec.json.schema(kind)
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2) + b"\n"
