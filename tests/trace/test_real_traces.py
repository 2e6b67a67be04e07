"""Exports of real captures: both readers agree on every declared column, and nothing private gets out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from nsysdiag.trace import reader
from nsysdiag.trace.columns import TextColumn
from nsysdiag.trace.tables import TABLES
from nsysdiag.trace.trace import open_trace
from tests.trace.files import listing

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "no-such-folder"))
TRACES = sorted(FOLDER.glob("*.sqlite"))

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not TRACES, reason="NSYSDIAG_TRACES names no folder with .sqlite files"),
]
every_trace = pytest.mark.parametrize("path", TRACES or [FOLDER], ids=lambda path: path.stem)


@pytest.mark.sampled(normal=7)
@every_trace
def test_both_readers_agree(path: Path) -> None:
    with open_trace(path) as columnar, open_trace(path, reader="sqlite3") as by_rows:
        for name, spec in TABLES.items():
            names = [column.name for column in spec.columns]
            one, two = columnar.read(name, *names), by_rows.read(name, *names)
            assert len(one) == len(two)
            for column in names:
                assert_equal(one[column], two[column])
        assert columnar.warnings == by_rows.warnings
        assert columnar.fingerprint == by_rows.fingerprint
        assert columnar.tables() == by_rows.tables()
        assert columnar.capabilities() == by_rows.capabilities()


def assert_equal(one: object, two: object) -> None:
    if isinstance(one, TextColumn):
        assert isinstance(two, TextColumn)
        assert one.values == two.values
        np.testing.assert_array_equal(one.codes, two.codes)
        return
    assert isinstance(one, np.ndarray)
    assert isinstance(two, np.ndarray)
    assert one.dtype == two.dtype
    np.testing.assert_array_equal(one, two)


@every_trace
def test_no_table_is_refused_and_nothing_is_left_behind(path: Path) -> None:
    before = listing(path.parent)
    with open_trace(path) as trace:
        assert not [warning for warning in trace.warnings if "required" in warning]
        unavailable = [trace.missing(name) for name in TABLES]
        assert not [reason for reason in unavailable if reason and "required" in reason]
        rows = {name: len(trace.read(name, TABLES[name].columns[0].name)) for name in TABLES}
        assert sum(rows.values()) > 0
        assert all(trace.has(name) == (count > 0) for name, count in rows.items())
    assert listing(path.parent) == before


@every_trace
def test_clean_tables_never_need_the_slow_reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("read row by row")

    monkeypatch.setattr(reader, "read_rows", refuse)
    with open_trace(path) as trace:
        for name, spec in TABLES.items():
            trace.read(name, *(column.name for column in spec.columns))


@every_trace
def test_names_of_kernels_and_calls_are_known(path: Path) -> None:
    with open_trace(path) as trace:
        kernels = trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "shortName")
        calls = trace.read("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId")
        for ids in (kernels.integers("shortName"), calls.integers("nameId")):
            assert not [name for name in trace.strings.texts(ids) if name.startswith("<string")]


@pytest.mark.parametrize(
    ("stem", "versions", "kernels"),
    [
        ("pipit_cloverleaf", ("2024.5.1.113", "3.13.2"), 1312),
        ("pipit_saxpy-mpi", ("2022.2.1.31", "2.9.1"), 5),
        ("mordred", (None, None), 12),
        ("centerformer_nvtx-only", ("2022.4.2.1", "3.0.0"), 0),
    ],
)
def test_known_facts(stem: str, versions: tuple[str | None, str | None], kernels: int) -> None:
    found = [path for path in TRACES if path.name.startswith(stem)]
    if not found:
        pytest.skip(f"no trace {stem}")
    with open_trace(found[0]) as trace:
        assert (trace.nsys_version, trace.schema_version) == versions
        assert len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")) == kernels
