"""Folders of Parquet files: every read, and every report, gives what the SQLite file of the same capture gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nsysdiag
from nsysdiag.config.settings import Settings
from nsysdiag.record import to_json
from nsysdiag.trace.columns import Columns, TextColumn
from nsysdiag.trace.parquet import folder as parquet_folder
from nsysdiag.trace.tables import TABLES, TEXTS
from nsysdiag.trace.trace import Trace, open_trace
from tests.simulator.scenarios import SCENARIOS
from tests.trace.files import KERNEL, NVTX, execute, insert, small_trace
from tests.trace.parquet_folders import to_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.shared import Shared

KERNELS, CHAINS, SCHED = "CUPTI_ACTIVITY_KIND_KERNEL", "SAMPLING_CALLCHAINS", "SCHED_EVENTS"
NAMES_A_FILE = ("fingerprint", "size_bytes")
LARGE = "starved_training"


def pair(shared: Shared, name: str, row_group: int = 2_048) -> tuple[Path, Path]:
    """The trace of a scenario as an SQLite file and as a folder of the same name."""
    trace = shared.trace(name)
    folder = trace.parent / f"parquet-{row_group}-{os.getpid()}" / trace.name
    return trace, folder if folder.exists() else to_folder(trace, folder, row_group=row_group)


def assert_same(one: Columns, other: Columns) -> None:
    assert one.names() == other.names()
    assert [one.present(name) for name in one.names()] == [other.present(name) for name in one.names()]
    assert len(one) == len(other)
    for name in one.names():
        if isinstance(one[name], TextColumn):
            assert one[name].values == other[name].values, name
            assert one[name].codes.tolist() == other[name].codes.tolist(), name
        else:
            np.testing.assert_array_equal(one[name], other[name], name)
            assert one[name].dtype == other[name].dtype, name


def both(paths: tuple[Path, Path], read: Callable[[Trace], Any]) -> tuple[Any, Any]:
    found = []
    for path in paths:
        with open_trace(path) as trace:
            found.append(read(trace))
    return found[0], found[1]


def everything(trace: Trace) -> Iterator[Columns]:
    for name, spec in TABLES.items():
        yield trace.read(name, *(column.name for column in spec.columns))


@pytest.mark.sampled(quick=105, normal=53)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_every_scenario_has_the_same_report(shared: Shared, name: str) -> None:
    settings, (trace, folder) = Settings(timeline=False), pair(shared, name)
    reports = shared.report(trace, settings), nsysdiag.analyze(folder, settings)
    found = [json.loads(to_json(report)) for report in reports]
    for report in found:
        for field in NAMES_A_FILE:
            assert report["trace"].pop(field)
        # Strings are keyed by their ids in exports, and not here: then it is the number of rows.
        assert report["trace"]["tables"].pop("StringIds")
    assert found[0] == found[1]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("group_rows", [1, 100, 1 << 18])
def test_every_column_of_every_table(shared: Shared, group_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever pieces the row groups are read."""
    monkeypatch.setattr(parquet_folder, "GROUP_ROWS", group_rows)
    one, other = both(pair(shared, LARGE), lambda trace: list(everything(trace)))
    assert sum(map(len, one)) > 600
    for first, second in zip(one, other, strict=True):
        assert_same(first, second)


def busiest(shared: Shared) -> tuple[Path, Path]:
    return pair(shared, LARGE, 4)


@pytest.mark.slow
def test_a_part_of_the_time(shared: Shared) -> None:
    paths = busiest(shared)
    with open_trace(paths[0]) as trace:
        start = np.sort(trace.read(KERNELS, "start")["start"])
    low, high = int(start[len(start) // 3]), int(start[2 * len(start) // 3])

    def read(trace: Trace) -> list[Columns]:
        trace.only_between(low, high)
        return list(everything(trace))

    one, other = both(paths, read)
    for first, second in zip(one, other, strict=True):
        assert_same(first, second)
    with open_trace(paths[1]) as trace:
        trace.only_between(low, high)
        assert 0 < len(trace.read(KERNELS, "start")) < len(start)


def test_other_columns_of_rows_outside_the_time_are_not_read(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_folder, "GROUP_ROWS", 1)
    _, folder = busiest(shared)
    cells = dict.fromkeys(("start", "cpu"), 0)
    read = parquet_folder._read

    def counting(opened: Any, places: list[int], names: list[str], rows: int) -> dict[str, Any]:
        cells.update((name, cells.get(name, 0) + rows) for name in names)
        return read(opened, places, names, rows)

    monkeypatch.setattr(parquet_folder, "_read", counting)
    with open_trace(folder) as trace:
        starts = np.sort(trace.read(SCHED, "start")["start"])
        cells = dict.fromkeys(cells, 0)
        trace.only_between(int(starts[0]), int(starts[len(starts) // 10]))
        assert len(trace.read(SCHED, "cpu")) == np.count_nonzero(starts < starts[len(starts) // 10])
    assert cells["start"] == len(starts)
    assert 0 < cells["cpu"] < len(starts) / 4


def test_chosen_rows_and_pairs(shared: Shared) -> None:
    paths = busiest(shared)
    with open_trace(paths[0]) as trace:
        sched = trace.read(SCHED, "globalTid", "cpu")
    pairs = sorted(set(zip(sched["globalTid"].tolist(), sched["cpu"].tolist(), strict=True)))[::2]

    def chosen(trace: Trace) -> Any:
        return [
            trace.read_chosen(SCHED, "globalTid", [pairs[0][0], 12345], "start", "globalTid"),
            trace.read_chosen("StringIds", "id", [1, 3, 5, 99_999], "id", "value"),
        ]

    for first, second in zip(*both(paths, chosen), strict=True):
        assert len(first)
        assert_same(first, second)
    one, other = both(paths, lambda trace: trace.read_split(SCHED, ("globalTid", "cpu"), pairs, "start", "isSchedIn"))
    assert list(one) == list(other)
    assert list(one)
    for each in one:
        assert_same(one[each], other[each])


def test_what_a_trace_tells_of_itself(shared: Shared) -> None:
    def told(trace: Trace) -> Any:
        ids = [1, 5, 17, -1, 1 << 40]
        return (
            trace.strings.texts(ids),
            [trace.strings.known(each) for each in ids],
            trace.capabilities(),
            trace.tables() | {"StringIds": "of the ids"},
            trace.nsys_version,
            trace.schema_version,
            trace.sampled_times(KERNELS, 10).tolist(),
            [trace.about_rows(name) for name in TABLES if name != "StringIds"],
        )

    one, other = both(busiest(shared), told)
    assert one == other


def test_numbers_of_odd_sizes_and_nulls(tmp_path: Path) -> None:
    path = execute(tmp_path / "t.sqlite", KERNEL, NVTX)
    largest = (1 << 63) - 1
    rows = [(1, 2, 0, 1, 7, None, -1, 5, 6, None), (3, 4, 0, 1, 7, largest, -(1 << 63), 5, 6, 1 << 40)]
    insert(path, KERNELS, rows)
    insert(path, "NVTX_EVENTS", [(1, None, 59, None, 5, 0.5), (2, 3, 59, "", 5, None), (4, 5, 59, "é", None, 2.0)])
    folder = to_folder(path, tmp_path / "t_pqtdir")
    (folder / "META_DATA_EXPORT.parquet").write_bytes((folder / f"{KERNELS}.parquet").read_bytes())
    for table in (KERNELS, "NVTX_EVENTS"):
        names = [column.name for column in TABLES[table].columns]
        assert_same(*both((path, folder), partial(_read, table=table, names=names)))


def _read(trace: Trace, *, table: str, names: list[str]) -> Columns:
    return trace.read(table, *names)


@pytest.mark.slow
def test_pandas_is_not_loaded(tmp_path: Path) -> None:
    path = small_trace(execute(tmp_path / "t.sqlite", NVTX))
    insert(path, "NVTX_EVENTS", [(1, None, 59, "a", 5, 0.5), (2, 3, 59, None, None, None)])
    folder = to_folder(path, tmp_path / "t_pqtdir")
    code = f"""if True:
        import sys
        from nsysdiag.trace.tables import TABLES
        from nsysdiag.trace.trace import open_trace
        with open_trace({str(folder)!r}) as trace:
            trace.only_between(0, 150)
            for name, spec in TABLES.items():
                trace.read(name, *(column.name for column in spec.columns))
        print({{"pandas"}} & sys.modules.keys())"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_a_table_of_texts_alone(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.sqlite")
    folder = to_folder(path, tmp_path / "t_pqtdir")
    texts = [column.name for column in TABLES["StringIds"].columns if column.type in TEXTS]
    one, other = both((path, folder), lambda trace: trace.read("StringIds", *texts))
    assert_same(one, other)
    assert other.text("value").texts() == ["void saxpy(float*)", "saxpy"]


def test_a_folder_that_changes_is_told(tmp_path: Path) -> None:
    folder = to_folder(small_trace(tmp_path / "t.sqlite"), tmp_path / "t_pqtdir")
    with open_trace(folder) as trace:
        assert trace.check_unchanged()
        (folder / "PROCESSES.parquet").write_bytes((folder / "StringIds.parquet").read_bytes())
        assert not trace.check_unchanged()
        assert any("was changed while it was read" in warning for warning in trace.warnings)


def test_the_fingerprint_is_that_of_the_files(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.sqlite")
    one, same = (to_folder(path, tmp_path / name) for name in ("a", "b"))
    other = to_folder(insert(path, "StringIds", [(3, "axpy")]), tmp_path / "c")
    found = []
    for folder in (one, same, other):
        with open_trace(folder, full_hash=True) as trace:
            found.append((trace.fingerprint, trace.sha256, trace.size_bytes > 0))
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    assert found[0][1] != found[2][1]


@pytest.mark.real
def test_a_real_pair_has_the_same_report() -> None:
    traces = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
    folders = sorted(traces.glob("*_pqtdir"))
    if not folders:
        pytest.skip("no folders of Parquet files")
    for folder in folders:
        (trace,) = traces.glob(f"{folder.name.removesuffix('_pqtdir')}.sqlite")
        found = [json.loads(to_json(nsysdiag.analyze(path))) for path in (trace, folder)]
        for report in found:
            for field in ("file", *NAMES_A_FILE):
                del report["trace"][field]
        assert found[0] == found[1]
