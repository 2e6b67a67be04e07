"""Arbitrary runs against a slow count of what must be found, and real traces against what SQL says of them."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median_high
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysdiag.functions import bundled_trace
from nsysdiag.ranks.pipeline import analyze_ranks
from tests.levels import examples
from tests.ranks.run import MS, TRANSFER, US, compared_files, files

if TYPE_CHECKING:
    from collections.abc import Callable

TRACES = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
LEAST_LATE = 20 * US
WAITS = """
WITH kernel AS (
    SELECT dense_rank() OVER (ORDER BY globalPid) AS device, start, end,
        row_number() OVER (PARTITION BY globalPid ORDER BY start) AS number
    FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName WHERE value LIKE 'nccl%'
), pair AS (
    SELECT a.end - a.start AS first, b.end - b.start AS second
    FROM kernel a JOIN kernel b ON a.number = b.number AND a.device = 1 AND b.device = 2
)
SELECT count(*), sum(min(first, second)), sum(max(first - second, 0)), sum(max(second - first, 0)) FROM pair
"""

arrival = st.integers(0, 5 * MS // US).map(lambda us: 4 * MS + us * US)
runs = st.integers(2, 5).flatmap(
    lambda ranks: st.tuples(
        st.lists(st.lists(arrival, min_size=ranks, max_size=ranks), min_size=3, max_size=6),
        st.lists(st.integers(0, 10_000 * MS), min_size=ranks, max_size=ranks),
    )
)


def expected(steps: list[list[int]]) -> dict[str, list[int]]:
    """What each rank waited, how often it was late and by how much, counted step by step."""
    ranks = range(len(steps[0]))
    found = {name: [0 for _ in ranks] for name in ("wait", "late", "late_ns", "caused")}
    for step in steps:
        waits = [max(step) - arrive for arrive in step]
        last = max(ranks, key=lambda rank: (step[rank], rank))  # of equal ones the last in order
        delay = step[last] - median_high(sorted(arrive for rank, arrive in enumerate(step) if rank != last))
        for rank in ranks:
            found["wait"][rank] += waits[rank]
        if delay > LEAST_LATE:
            found["late"][last] += 1
            found["late_ns"][last] += delay
            found["caused"][last] += sum(waits)
    return found


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(runs)
def test_waits_and_delays_are_those_of_a_slow_count(run: tuple[list[list[int]], list[int]]) -> None:
    steps, clocks = run
    with tempfile.TemporaryDirectory() as folder:
        found = compared_files(*files(Path(folder), steps, clocks))
    slow = expected(steps)
    assert [row.offset_ns for row in found.ranks] == [clocks[0] - clock for clock in clocks]
    assert [row.wait_ns for row in found.ranks] == slow["wait"]
    assert [row.transfer_ns for row in found.ranks] == [TRANSFER * len(steps)] * len(clocks)
    assert [row.late for row in found.ranks] == slow["late"]
    assert [row.late_ns for row in found.ranks] == slow["late_ns"]
    assert [row.caused_ns for row in found.ranks] == slow["caused"]
    assert sum(wait.wait_ns for wait in found.waits) == sum(slow["wait"])
    for late in found.stragglers:
        assert sum(late.more.values()) in (0, late.late_ns)
        assert sum(late.meanwhile.values()) <= late.late_ns
    for wait in found.waits:
        assert sum(wait.causes.values()) == (wait.wait_ns if wait.late_rank else 0)
    assert [a.wait_ns >= b.wait_ns for a, b in pairwise(found.waits)] == [True] * max(len(found.waits) - 1, 0)


def waits_by_sql(path: Path) -> tuple[int, ...]:
    """Pairs of collectives, their transfer, and what either device waited."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return tuple(connection.execute(WAITS).fetchone())


def waits_found(path: Path) -> tuple[int, ...]:
    first, second = analyze_ranks([path]).comparison.ranks
    assert first.matched == second.matched
    return first.matched, first.transfer_ns, first.wait_ns, second.wait_ns


SIMULATED = (Path(__file__).parents[1] / "fixtures" / "sim_starved_training.sqlite.gz").read_bytes


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize(
    ("packed", "waits", "late"),
    [(SIMULATED, (90, 37_800_000, 0, 129_121_600), 45), (bundled_trace, (90, 37_800_000, 0, 499_382_671), 90)],
    ids=["simulated", "captured"],
)
def test_two_ranks_are_as_sql_says_and_wait_for_the_loader_of_the_first(
    packed: Callable[[], bytes], waits: tuple[int, ...], late: int, tmp_path: Path
) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(gzip.decompress(packed()))
    assert waits_found(path) == waits_by_sql(path) == waits
    (straggler,) = analyze_ranks([path]).comparison.stragglers
    assert (straggler.rank, straggler.late, straggler.confidence) == ("gpu0", late, 1.0)
    assert straggler.more["data_loading"] > 0.75 * straggler.late_ns


@pytest.mark.sampled(normal=2)
@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("nsysai_mfu-2gpu-before_nsys2026.2", (33, 5_777_111, 11_395_541, 2_451_989)),
        ("nsysai_mfu-2gpu-after_nsys2026.2", (31, 5_477_836, 4_511_180, 18_275_249)),
    ],
)
def test_two_real_ranks_are_as_sql_says(name: str, waits: tuple[int, ...]) -> None:
    path = TRACES / f"{name}.sqlite"
    assert waits_found(path) == waits_by_sql(path) == waits


def one_process(source: Path, target: Path, number: int, ahead_ns: int) -> Path:
    """The trace of one process alone, the `number`-th, on a clock that is ahead; without the start of its session."""
    shutil.copyfile(source, target)
    target.chmod(0o600)
    with closing(sqlite3.connect(target)) as trace:
        processes = trace.execute("SELECT DISTINCT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1").fetchall()
        kept = processes[number][0]
        for (table,) in trace.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = {row[1] for row in trace.execute(f"PRAGMA table_info({table})")}
            if "globalPid" in columns and "start" in columns:
                trace.execute(f"DELETE FROM {table} WHERE globalPid <> {kept}")
            if "globalTid" in columns and "start" in columns:
                trace.execute(f"DELETE FROM {table} WHERE globalTid & ~0xFFFFFF <> {kept}")
            if {"start", "end"} <= columns:
                trace.execute(f"UPDATE {table} SET start = start + {ahead_ns}, end = end + {ahead_ns}")
        trace.execute(f"UPDATE ANALYSIS_DETAILS SET duration = duration + {ahead_ns}")
        trace.commit()
    return target


@pytest.mark.thorough
@pytest.mark.real
@pytest.mark.parametrize("name", ["nsysai_mfu-2gpu-before_nsys2026.2", "nsysai_mfu-2gpu-after_nsys2026.2"])
def test_two_real_ranks_apart_in_two_files_are_as_in_one(name: str, tmp_path: Path) -> None:
    """The kernels that send and receive end some microseconds apart: so sure is the clock, and no surer."""
    source, ahead = TRACES / f"{name}.sqlite", 7_000 * MS
    together = analyze_ranks([source]).comparison
    paths = [one_process(source, tmp_path / f"{at}.sqlite", at, at * ahead) for at in (0, 1)]
    apart = compared_files(*paths)
    assert [row.wait_ns for row in apart.ranks] == [row.wait_ns for row in together.ranks]
    assert apart.clock_error_ns is not None
    assert abs(apart.ranks[1].offset_ns + ahead) <= apart.clock_error_ns < 50 * US
    for one, other in zip(apart.ranks, together.ranks, strict=True):
        assert 0 < one.late <= other.late  # small delays are less than the clocks allow to tell
        assert one.late_ns == pytest.approx(other.late_ns, rel=0.15)
