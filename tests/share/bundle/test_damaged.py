"""Whatever the analysis reads, a bundle holds a slice of it: ids that are not integers, keys of other declarations."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, open_trace
from nsysdiag.messages import InputError
from nsysdiag.pipeline.analysis import analyze_trace
from nsysdiag.share.slicing import slice_of
from nsysdiag.trace.catalog import quoted
from nsysdiag.trace.tables import TABLES
from tests.hostile.damage import DAMAGE, change, copied, damaged
from tests.hostile.every_table import write_every_table
from tests.levels import crossed, some
from tests.share.bundle.bundling import sliced
from tests.share.bundle.redacted import redacted_slice
from tests.share.slice.cutting import rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

COLUMNS = {name: [column.name for column in spec.columns if not column.parts] for name, spec in TABLES.items()}
SINGLE = [(table, column) for table, columns in COLUMNS.items() for column in columns]
CASES = [(table, kind) for table in COLUMNS for kind in DAMAGE]
ONCE_REFUSED = [
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "floats"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "floats"),
    ("OSRT_API", "digits as text"),
    ("SCHED_EVENTS", "far floats"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "text"),
]
KEYS = ["INT PRIMARY KEY", "PRIMARY KEY", "INTEGER PRIMARY KEY DESC", "REAL"]
VALUES = {
    "as they are": "{c}",
    "halves": "{c} + 0.5",
    "texts": "'n' || {c}",
    "digits": "'0' || {c}",
    "one null": "nullif({c}, 1)",
}
PAIRS = [(key, value) for key in KEYS for value in VALUES]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_every_table(tmp_path_factory.mktemp("whole") / "every.sqlite")


def check(source: Path, folder: Path) -> None:
    """The slice has the verdicts of the trace, where the analysis reads that at all."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with ExitStack() as opened:
        try:
            trace = opened.enter_context(open_trace(source))
            report = analyze_trace(trace, Settings(), keep_time=True)
        except InputError:
            return
        assert slice_of(trace, report, Settings(), folder).alike


@pytest.mark.sampled(normal=7)
@pytest.mark.parametrize(("table", "kind"), [*ONCE_REFUSED, *some(CASES, 524, thorough=60)])
def test_cells(table: str, kind: str, whole: Path, tmp_path: Path) -> None:
    check(damaged(whole, tmp_path / "damaged.sqlite", table, COLUMNS[table], kind), tmp_path / "slices")


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize(
    ("table", "column"), [("CUPTI_ACTIVITY_KIND_RUNTIME", "start"), *some(SINGLE, 197, thorough=29)]
)
def test_texts_in_one_column(table: str, column: str, whole: Path, tmp_path: Path) -> None:
    check(damaged(whole, tmp_path / "damaged.sqlite", table, [column], "text"), tmp_path / "slices")


@pytest.mark.sampled(normal=10)
@pytest.mark.parametrize("kind", some(list(DAMAGE), 2))
def test_all_cells(kind: str, whole: Path, tmp_path: Path) -> None:
    for table in some(list(COLUMNS), 80, list(DAMAGE).index(kind), thorough=16):
        check(damaged(whole, tmp_path / "damaged.sqlite", table, COLUMNS[table], kind), tmp_path / "slices")


def keyed_otherwise(source: Path, table: str, key: str, value: str) -> None:
    """Declare the first column as `key`, the others without a type, and change its values."""
    first, *others = (quoted(name) for (name,) in rows(source, f"SELECT name FROM pragma_table_info('{table}')"))
    change(
        source,
        f"ALTER TABLE {quoted(table)} RENAME TO old",
        f"CREATE TABLE {quoted(table)} ({', '.join([f'{first} {key}', *others])})",
        f"INSERT OR IGNORE INTO {quoted(table)} SELECT {', '.join([value.format(c=first), *others])} FROM old",
        "DROP TABLE old",
    )


@pytest.mark.parametrize(
    ("table", "pair"),
    [
        *(("StringIds", pair) for pair in crossed(KEYS, list(VALUES), 8)),
        *crossed(
            ["SAMPLING_CALLCHAINS", "PROCESSES", "ThreadNames"],
            [(key, value) for key in KEYS for value in VALUES],
            24,
            thorough=5,
        ),
    ],
)
def test_keys(table: str, pair: tuple[str, str], whole: Path, tmp_path: Path) -> None:
    key, value = pair
    source = copied(whole, tmp_path / "keyed.sqlite")
    keyed_otherwise(source, table, key, VALUES[value])
    check(source, tmp_path / "slices")


@pytest.mark.thorough
def test_keys_without_rowid(whole: Path, tmp_path: Path) -> None:
    source = copied(whole, tmp_path / "keyed.sqlite")
    change(
        source,
        "CREATE TABLE other (id, value, PRIMARY KEY (id)) WITHOUT ROWID",
        "INSERT INTO other SELECT id + 0.5 * (id % 2), value FROM StringIds",
        "INSERT INTO other SELECT id, value FROM StringIds WHERE id % 2",
        "DROP TABLE StringIds",
        "ALTER TABLE other RENAME TO StringIds",
    )
    check(source, tmp_path / "slices")


def test_under_other_names(whole: Path, tmp_path: Path) -> None:
    source = damaged(whole, tmp_path / "d.sqlite", "OSRT_API", COLUMNS["OSRT_API"], "floats")
    keyed_otherwise(source, "StringIds", "", VALUES["digits"])
    _report, part = redacted_slice(source, tmp_path / "slices")
    assert part.alike


def test_what_the_reader_takes_for_an_integer_is_one(whole: Path, tmp_path: Path) -> None:
    source = copied(whole, tmp_path / "d.sqlite")
    change(source, "UPDATE OSRT_API SET globalTid = globalTid + 0.5 WHERE rowid = 1")
    found = sliced(source, tmp_path / "slices")
    kinds = rows(found.path, "SELECT DISTINCT typeof(globalTid) FROM OSRT_API")
    assert kinds == [("integer",)]
