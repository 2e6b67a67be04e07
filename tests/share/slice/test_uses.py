"""Every name that a slice can hold is classified: one that nobody thought of fails here instead of leaking."""

from __future__ import annotations

import sqlite3

import pytest

from nsysdiag.share.slice.session import STRINGS
from nsysdiag.share.slice.uses import REFERENCES, TEXTS, Use, coded, coded_sql, decoded_sql, number_of, use_of
from nsysdiag.trace.tables import TABLES, ColumnType

IDS = {*STRINGS, "jsonTextId"}


def declared(kind: ColumnType) -> set[tuple[str, str]]:
    return {(table.name, column.name) for table in TABLES.values() for column in table.columns if column.type is kind}


def listed(columns: dict[str, dict[str, Use]]) -> set[tuple[str, str]]:
    return {(table, column) for table, uses in columns.items() for column in uses}


def test_every_text_is_classified() -> None:
    assert listed(TEXTS) == declared(ColumnType.TEXT), "say in cutting/uses.py what these columns hold"


def test_every_id_of_a_string_is_classified() -> None:
    assert listed(REFERENCES) == {place for place in declared(ColumnType.INTEGER) if place[1] in IDS}


def test_bytes_have_a_rule_of_their_own() -> None:
    assert declared(ColumnType.BLOB) == {("NVTX_EVENTS", "binaryData")}


@pytest.mark.parametrize("use", Use)
@pytest.mark.parametrize("number", [0, 1, 17, 2**32 + 5, 2**57])
def test_an_id_for_each_use(use: Use, number: int) -> None:
    """The same in Python and in SQL, there and back."""
    connection = sqlite3.connect(":memory:")
    (made,) = connection.execute(f"SELECT {coded_sql(use, str(number))}").fetchone()
    assert made == coded(use, number)
    assert connection.execute(f"SELECT {', '.join(decoded_sql(str(made)))}").fetchone() == (number, number_of(use))
    assert use_of(number_of(use)) is use


@pytest.mark.parametrize("number", [-1, 2**58, 2**63 - 1])
def test_what_is_no_id_stays_none(number: int) -> None:
    connection = sqlite3.connect(":memory:")
    assert connection.execute(f"SELECT {coded_sql(Use.KERNEL, str(number))}").fetchone() == (None,)
    assert coded(Use.KERNEL, number) == -1


def test_ids_keep_their_order() -> None:
    """By which ties between names are settled."""
    assert coded(Use.KERNEL, 3) < coded(Use.KERNEL, 4)
    assert len({coded(use, 3) for use in Use}) == len(Use)
