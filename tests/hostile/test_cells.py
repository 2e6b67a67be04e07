"""Damage to the cells, columns and tables of a trace that has rows in all of them: an exact report or a plain error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.messages import InputError
from nsysdiag.report import Report
from nsysdiag.trace.tables import TABLES
from tests.hostile.checks import ALL, outcome
from tests.hostile.damage import DAMAGE, change, copied, damage_of, damaged
from tests.hostile.every_table import write_every_table
from tests.levels import some

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {name: [column.name for column in spec.columns if not column.parts] for name, spec in TABLES.items()}
TIMES = [table for table, columns in COLUMNS.items() if {"start", "end"} <= set(columns)]
KINDS = list(DAMAGE)
TOGETHER = 6
"""Columns that are dropped at once, each of another table."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_every_table(tmp_path_factory.mktemp("whole") / "every.sqlite")


@pytest.mark.slow
def test_the_undamaged_one_is_analyzed_in_full(whole: Path) -> None:
    report = outcome(whole, ALL)
    assert isinstance(report, Report)
    assert [device.ops.kernel for device in report.devices] == [24, 24]
    assert all(capability.available for capability in report.trace.capabilities)
    assert report.host is not None
    assert all(device.iterations and device.gap_count for device in report.devices)


@pytest.mark.thorough
@pytest.mark.parametrize("turn", some([0, 7], 2))
def test_each_column_of_a_table_in_another_way(turn: int, whole: Path, tmp_path: Path) -> None:
    for number, (table, columns) in some(list(enumerate(COLUMNS.items())), 6, turn, thorough=3):
        target = copied(whole, tmp_path / "damaged.sqlite")
        for place, column in enumerate(columns):
            change(target, damage_of(table, [column], KINDS[(number + place + turn) % len(KINDS)]))
        outcome(target)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "columns", "kind"),
    [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", None, "null"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", None, "far floats"),
        ("GPU_METRICS", ["timestamp"], "wide apart"),
    ],
)
def test_what_once_broke_it(table: str, columns: list[str] | None, kind: str, whole: Path, tmp_path: Path) -> None:
    assert isinstance(outcome(damaged(whole, tmp_path / "t.sqlite", table, columns or COLUMNS[table], kind)), Report)


@pytest.mark.sampled(normal=17)
@pytest.mark.parametrize("kind", DAMAGE)
def test_every_column_of_a_table(kind: str, whole: Path, tmp_path: Path) -> None:
    for table in some(list(COLUMNS), 64, KINDS.index(kind), thorough=16):
        outcome(damaged(whole, tmp_path / "damaged.sqlite", table, COLUMNS[table], kind), ALL)


@pytest.mark.sampled(normal=13)
@pytest.mark.parametrize("table", COLUMNS)
def test_each_column_in_another_way(table: str, whole: Path, tmp_path: Path) -> None:
    """Which one goes by the place of the column; together the tables have every kind of damage."""
    first = list(COLUMNS).index(table)
    for place, column in some(list(enumerate(COLUMNS[table], first)), 24, first, thorough=6):
        outcome(damaged(whole, tmp_path / "damaged.sqlite", table, [column], KINDS[place % len(KINDS)]))


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("way", ['DROP TABLE "{}"', 'DELETE FROM "{}"'], ids=["dropped", "emptied"])
def test_a_table_is_gone(way: str, whole: Path, tmp_path: Path) -> None:
    for table in some(list(TABLES), 16, way.startswith("DELETE"), thorough=2):
        target = copied(whole, tmp_path / "gone.sqlite")
        change(target, way.format(table))
        report = outcome(target)
        assert isinstance(report, Report)
        if table == "CUPTI_ACTIVITY_KIND_KERNEL":
            assert not next(each for each in report.trace.capabilities if each.id == "kernels").available


@pytest.mark.thorough
def test_a_column_is_gone(whole: Path, tmp_path: Path) -> None:
    several = sorted(
        (place, table, column)
        for table, columns in COLUMNS.items()
        for place, column in enumerate(columns)
        if len(columns) > 1
    )
    for first in some(range(0, len(several), TOGETHER), 8, thorough=2):
        target = copied(whole, tmp_path / "gone.sqlite")
        for _, table, column in several[first : first + TOGETHER]:
            change(target, f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
        outcome(target)


@pytest.mark.slow
@pytest.mark.parametrize("table", some(TIMES, 8))
def test_ends_before_starts(table: str, whole: Path, tmp_path: Path) -> None:
    target = copied(whole, tmp_path / "reversed.sqlite")
    change(target, f'UPDATE "{table}" SET start = "end", "end" = start WHERE "end" > start')
    assert isinstance(outcome(target), Report)


@pytest.mark.sampled(quick=6)
@pytest.mark.parametrize("kind", ["null", "text", "least", "infinity", "zero", "negative"])
def test_kernels_without_times_are_left_out_and_told(kind: str, whole: Path, tmp_path: Path) -> None:
    tables = [table for table in TIMES if "deviceId" in COLUMNS[table] and "SYNC" not in table]
    target = copied(whole, tmp_path / "timeless.sqlite")
    for table in tables:
        change(target, f'UPDATE "{table}" SET "end" = {DAMAGE[kind].format(c=chr(34) + "end" + chr(34))}')
    report = outcome(target)
    assert isinstance(report, Report)
    for device in report.devices:
        assert device.ops.malformed > 0
        assert any("malformed operation rows were left out" in note for note in device.notes)


def test_times_too_far_apart_are_an_error_with_a_way_out(whole: Path, tmp_path: Path) -> None:
    target = copied(whole, tmp_path / "apart.sqlite")
    change(target, "DROP TABLE ANALYSIS_DETAILS")
    change(target, 'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = 9223372036854775807 WHERE rowid = 3')
    error = outcome(target)
    assert isinstance(error, InputError)
    assert "too far apart to be real" in error.message


@pytest.mark.slow
def test_an_unknown_string_reads_as_its_number(whole: Path, tmp_path: Path) -> None:
    target = copied(whole, tmp_path / "unnamed.sqlite")
    change(target, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = 999, demangledName = 999")
    report = outcome(target, ALL)
    assert isinstance(report, Report)
    assert {row.name for row in report.devices[0].kernels} == {"<string 999>"}
