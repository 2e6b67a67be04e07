"""Damage done to the cells of a trace, as SQL: an expression for each kind, of the column `{c}` of a row."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from nsysdiag.trace.catalog import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _some(value: str) -> str:
    return f"CASE WHEN rowid % 3 = 1 THEN {value} ELSE {{c}} END"


DAMAGE = {
    "null": "NULL",
    "some null": _some("NULL"),
    "text": "'a<b>' || char(27, 10) || '%s'",
    "some text": _some("'1e5'"),
    "digits as text": "CAST({c} AS TEXT) || ' '",
    "floats": _some("{c} + 0.5"),
    "infinity": _some("9e999"),
    "far floats": "{c} * -1e300",
    "bytes": _some("x'ff00c328'"),
    "zero": "0",
    "negative": "-{c}",
    "least": "-9223372036854775807 - 1",
    "some least": _some("-9223372036854775807 - 1"),
    "greatest": "9223372036854775807",
    "some greatest": _some("9223372036854775807"),
    "near the greatest": _some("9223372036854775807 - rowid"),
    "half the greatest": _some("4611686018427387904 + rowid"),
    "wide apart": "(rowid % 4 - 2) * 4611686018427387903",
    "small": "rowid % 5",
}
"""By name; what is meant for numbers hits texts too, and the other way round."""


def copied(trace: Path, target: Path) -> Path:
    """A copy that can be written to, over an earlier one."""
    shutil.copyfile(trace, target)
    target.chmod(0o600)
    return target


def change(trace: Path, *statements: str) -> None:
    """Run statements on a trace."""
    with closing(sqlite3.connect(trace)) as connection, connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for statement in statements:
            connection.execute(statement)


def damage_of(table: str, columns: Sequence[str], kind: str) -> str:
    """The statement that does one kind of damage to these columns."""
    changes = ", ".join(f"{quoted(name)} = {DAMAGE[kind].format(c=quoted(name))}" for name in columns)
    return f"UPDATE OR IGNORE {quoted(table)} SET {changes}"


def damaged(trace: Path, target: Path, table: str, columns: Sequence[str], kind: str) -> Path:
    """A copy with one kind of damage in these columns."""
    change(copied(trace, target), damage_of(table, columns, kind))
    return target
