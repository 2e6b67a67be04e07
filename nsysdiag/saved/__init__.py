"""Reads records from JSON, which may be damaged or hostile: checks its size, numbers and packed columns.

Records that pass can be drawn, compared and summed. Integers fit into 64 bits and are within their declared range
(`NOT_NEGATIVE` and others in fields); packed columns unpack to no more than a report of that size holds.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from nsysdiag.arrays.groups import MOST_EXPANSION
from nsysdiag.limits import SAVED_BYTES, SAVED_VALUES, UNPACKED_BYTES, UNPACKED_FOR_EACH
from nsysdiag.record import Packed, Record

AnyRecord = TypeVar("AnyRecord", bound=Record)

LARGEST_FLOAT = 1e30
"""No share, rate, time or amount of money comes near it, and sums and products of some do not overflow."""


def from_json(data: bytes, kind: type[AnyRecord]) -> AnyRecord:
    """The record saved as JSON. Raises one of UNREADABLE if `data` is not such a record, is too large, or has
    impossible numbers or packed columns."""
    check_size(data)
    record = msgspec.json.decode(data, type=kind)
    most = UNPACKED_BYTES + UNPACKED_FOR_EACH * len(data)
    if _unpacked_within("", record) > most:
        raise msgspec.ValidationError(f"its packed columns hold more than {most:,} bytes")
    return record


def check_size(data: bytes) -> None:
    """Raise ValidationError where there is more than is read of a report."""
    if len(data) > SAVED_BYTES:
        raise msgspec.ValidationError(f"it has {len(data):,} bytes; at most {SAVED_BYTES:,} are read")
    if data.count(b",") > SAVED_VALUES:
        raise msgspec.ValidationError(f"it has more than {SAVED_VALUES:,} values")


def _unpacked_within(name: str, value: object) -> int:
    """What all packed columns in a value of the field `name` may take, in bytes; checks its numbers. The types of the
    records bound how deep it goes."""
    if isinstance(value, Record):
        own = _unpacked_bytes(value) if isinstance(value, Packed) else 0
        return own + sum(_unpacked_within(each, getattr(value, each)) for each in value.__struct_fields__)
    if isinstance(value, dict):
        return sum(_unpacked_within(name, each) for each in value.values())
    if isinstance(value, list | tuple):
        return sum(_unpacked_within(name, each) for each in value)
    if (isinstance(value, int) and not -(2**63) <= value < 2**63) or (
        isinstance(value, float) and abs(value) > LARGEST_FLOAT
    ):
        raise msgspec.ValidationError(f"the number in `{name}` is out of range")
    return 0


def _unpacked_bytes(record: Packed) -> int:
    """What the columns of a record may take. Raises ValidationError where one is too short for its count."""
    total = 0
    for column in record.columns():
        most = len(column.text) * MOST_EXPANSION
        if column.values > most:
            raise msgspec.ValidationError(f"{column.values:,} numbers are packed into {len(column.text):,} characters")
        total += min(column.values * column.width, most)
    return total
