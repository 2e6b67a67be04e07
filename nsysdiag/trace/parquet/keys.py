"""The primary keys that tables have in SQLite exports: Parquet files tell none."""

from __future__ import annotations

KEYED = ("ENUM_", "StringIds", "COMPOSITE_EVENTS")
"""Tables of one id for each row, which is the number of the row as well."""
CALL_CHAINS = "_CALLCHAINS"
"""Tables of a row for each frame."""


def key_of(table: str) -> tuple[str, ...]:
    """The columns of the primary key of a table; none for one without."""
    if table.startswith(KEYED):
        return ("id",)
    return ("id", "stackDepth") if table.endswith(CALL_CHAINS) else ()
