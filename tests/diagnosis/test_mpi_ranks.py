"""A trace of some ranks of an MPI program says which, and that there are others."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.diagnosis.judge import ranks_elsewhere
from nsysdiag.events.identity import MpiRanks, mpi_ranks
from nsysdiag.trace.trace import open_trace
from tests.builder import MAIN, TraceBuilder

ONE_PROCESS = "The trace holds one process of an MPI program: other ranks, if any, are not in it."
MS = 1_000_000


@pytest.mark.parametrize(
    ("ranks", "at_least", "said"),
    [
        ((7,), 8, "The trace holds MPI rank 7 of at least 8: the others are not in it."),
        ((0,), 4, "The trace holds MPI rank 0 of at least 4: the others are not in it."),
        ((0,), 1, "The trace holds only MPI rank 0."),
        ((4, 5, 6, 7), 16, "The trace holds MPI ranks 4 to 7 of at least 16: the others are not in it."),
        ((0, 2, 5), 6, "The trace holds MPI ranks 0, 2 and 5 of at least 6: the others are not in it."),
        ((0, 2, 4, 6, 8), 9, "The trace holds 5 of at least 9 MPI ranks: the others are not in it."),
        ((0, 1, 2, 3), 4, ""),  # nothing tells of others
    ],
)
def test_the_sentence(ranks: tuple[int, ...], at_least: int, said: str) -> None:
    assert ranks_elsewhere(MpiRanks(ranks, at_least), 1, mpi=True) == said


@pytest.mark.parametrize(
    ("processes", "mpi", "said"), [(1, True, ONE_PROCESS), (4, True, ""), (None, True, ""), (1, False, "")]
)
def test_without_a_rank(processes: int | None, mpi: bool, said: str) -> None:
    assert ranks_elsewhere(MpiRanks(), processes, mpi=mpi) == said


def traced() -> TraceBuilder:
    trace = TraceBuilder()
    for at in range(20):
        trace.kernel(at * MS, at * MS + 600_000)
    return trace


def found_in(trace: TraceBuilder, folder: Path, *statements: str) -> MpiRanks:
    """What a trace tells with further tables."""
    path = trace.write(folder / "trace.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(";".join(statements))
    with open_trace(path) as opened:
        return mpi_ranks(opened)


@pytest.mark.parametrize(
    ("trace", "found"),
    [
        (traced(), MpiRanks()),
        (traced().thread_name("MPI Rank 7"), MpiRanks((7,), 8)),
        (traced().process(name="MPI Rank 7"), MpiRanks((7,), 8)),
        (traced().thread_name("My MPI Rank 7").process(name="MPI Rank x"), MpiRanks()),
    ],
)
def test_names(trace: TraceBuilder, found: MpiRanks, tmp_path: Path) -> None:
    assert found_in(trace, tmp_path) == found


@pytest.mark.parametrize(
    ("column", "sizes", "found"),
    [
        ("size", "4, 12", MpiRanks((2,), 12)),  # of the ranks of a node, and of all
        ("localSize", "4, 12", MpiRanks((2,), 12)),
        ("size", "0, -1, 4294967295, NULL", MpiRanks((2,), 3)),
    ],
)
def test_tables(column: str, sizes: str, found: MpiRanks, tmp_path: Path) -> None:
    rows = ", ".join(f"(2, {size})" for size in sizes.split(", "))
    ranks = "CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER); INSERT INTO MPI_RANKS VALUES (1, 2)"
    communicators = f"CREATE TABLE MPI_COMMUNICATORS (rank INTEGER, {column} INTEGER)"
    assert found_in(traced(), tmp_path, ranks, communicators, f"INSERT INTO MPI_COMMUNICATORS VALUES {rows}") == found


@pytest.mark.slow
def test_the_headline_says_it(tmp_path: Path) -> None:
    path = traced().thread_name("MPI Rank 7", thread=MAIN).write(tmp_path / "trace.sqlite")
    for settings in (Settings(), Settings(device="gpu0")):
        found = analyze(path, settings).diagnosis
        assert found is not None
        assert "MPI rank 7 of at least 8" in found.headline


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpubootcamp_mpi-report2_v100", "The trace holds MPI rank 7 of at least 8: the others are not in it."),
        ("pipit_saxpy-mpi_a100_nsys2022.2", "The trace holds only MPI rank 0."),
        ("pipit_cloverleaf_a100x4_nsys2024.5", ""),
    ],
)
def test_real_traces(name: str, said: str) -> None:
    found = analyze(Path(os.environ["NSYSDIAG_TRACES"]) / f"{name}.sqlite").diagnosis
    assert found is not None
    assert said in found.headline
    assert bool(said) == ("MPI rank" in found.headline)
