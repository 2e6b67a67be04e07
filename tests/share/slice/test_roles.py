"""Every name that a slice can hold is classified: one that nobody thought of fails here instead of leaking."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from nsysdiag.share.target import ROLES, Role, coded, coded_sql, decoded_sql
from nsysdiag.trace.tables import TABLES, ColumnType

IDS = {"nameId", "shortName", "demangledName", "mangledName", "textId", "jsonTextId", "symbol", "module", "srcFile"}
"""Columns that hold ids of StringIds."""


def declared(kind: ColumnType) -> set[tuple[str, str]]:
    return {(table.name, column.name) for table in TABLES.values() for column in table.columns if column.type is kind}


def test_every_name_is_classified() -> None:
    """Texts, and ids of strings."""
    ids = {place for place in declared(ColumnType.INTEGER) if place[1] in IDS}
    listed = {(table, column) for table, roles in ROLES.items() for column in roles}
    assert listed == declared(ColumnType.TEXT) | ids, "say in share/target.py what these columns hold"


def test_bytes_have_a_rule_of_their_own() -> None:
    assert declared(ColumnType.BLOB) == {("NVTX_EVENTS", "binaryData")}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("number", [0, 1, 17, 2**32 + 5, 2**57])
def test_an_id_for_each_use(role: Role, number: int) -> None:
    """The same in Python and in SQL, there and back."""
    with closing(sqlite3.connect(":memory:")) as connection:
        (made,) = connection.execute(f"SELECT {coded_sql(role, str(number))}").fetchone()
        assert made == coded(role, number)
        assert connection.execute(f"SELECT {', '.join(decoded_sql(str(made)))}").fetchone() == (number, role)


@pytest.mark.parametrize("number", [-1, 2**58, 2**63 - 1])
def test_what_is_no_id_stays_none(number: int) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute(f"SELECT {coded_sql(Role.KERNEL, str(number))}").fetchone() == (None,)
    assert coded(Role.KERNEL, number) == -1


def test_ids_keep_their_order() -> None:
    """By which ties between names are settled."""
    assert coded(Role.KERNEL, 3) < coded(Role.KERNEL, 4)
    assert len({coded(role, 3) for role in Role}) == len(Role)
