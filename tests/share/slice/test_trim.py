"""What cuts captures down makes them fit to be published, by the same code that slices traces for bundles."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from tests.levels import some
from tests.share.bundle.test_private import WORDS
from tests.share.slice.cutting import Rows, rows, tables
from tests.share.slice.private import CANARY, MUCH_LATER, private_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.fixtures, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
FIXTURES = sorted((ROOT / "tests" / "fixtures").glob("*.sqlite.gz"))
SOME = [path for path in FIXTURES if not path.name.startswith("real_host_") or "starved" in path.name]
"""Captures with worker processes stand for those of one process."""
FEWER = {"StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS"}
"""Tables that lose rows that nothing refers to: names, versions in parts, domains."""
PATHS = {"StringIds", "PROCESSES"}
"""Tables that held paths before the simulated fixtures were trimmed."""
BLANKED = {"uuid", "startTime", "stopTime", "utcTime", "localTime"}


@pytest.fixture(scope="module")
def trim() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trimming", ROOT / "scripts" / "capturing" / "trimming.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unpacked(data: bytes, path: Path) -> Path:
    path.write_bytes(gzip.decompress(data))
    return path


@pytest.mark.parametrize("fixture", some(SOME, 5), ids=lambda path: path.name)
def test_a_fixture_trimmed_again_is_what_it_was(fixture: Path, trim: ModuleType, tmp_path: Path) -> None:
    before = unpacked(fixture.read_bytes(), tmp_path / "before.sqlite")
    after = unpacked(trim.trimmed(before), tmp_path / "after.sqlite")
    assert tables(after) == tables(before)
    for table, kept in contents(after):
        full = rows(before, f"SELECT {columns(after, table)} FROM {table}")
        known = {*full, *map(shortened, full)} if table in PATHS else set(full)
        assert len(full) - len(kept) <= (len(full) // 2 + 1 if table in FEWER else 0), table
        assert set(kept) <= known, table
    assert analyze(after).devices == analyze(before).devices


def contents(path: Path) -> Iterator[tuple[str, Rows]]:
    for table in tables(path):
        yield table, rows(path, f"SELECT {columns(path, table)} FROM {table}")


def columns(path: Path, table: str) -> str:
    """Those that are not blanked; binary ones as they are."""
    names = [name for (name,) in rows(path, f"SELECT name FROM pragma_table_info('{table}')") if name not in BLANKED]
    return ", ".join(f'"{name}"' for name in names) or "1"


def shortened(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(cell.rpartition("/")[2] if isinstance(cell, str) and cell[:1] == "/" else cell for cell in row)


def test_what_is_private_goes(trim: ModuleType, tmp_path: Path) -> None:
    """The scope of such captures is process-tree, so that scheduling belongs to the program: the stranger's own name is
    left out of the trace for this."""
    source = private_trace(tmp_path / "trace.sqlite", stranger=False)
    data = gzip.decompress(trim.trimmed(source)).replace(MUCH_LATER.encode(), b"")
    assert [word for word in WORDS if word in data] == []
    assert CANARY.encode() in source.read_bytes()
