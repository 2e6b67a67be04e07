"""The base of all records that a report is made of."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all records: immutable, built by keyword."""
