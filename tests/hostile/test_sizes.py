"""Traces of absurd shapes are analyzed and drawn whole, with work that grows no faster than they do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag import Report, Settings, analyze
from nsysdiag.events.gpus import MOST_GPUS
from nsysdiag.events.rows import RowsOf
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.wakeups import runs
from tests.hostile.checks import ALL, assert_exact, outcome
from tests.hostile.sizes import WRITERS, write_devices, write_processes, write_threads
from tests.levels import THOROUGH, some

if TYPE_CHECKING:
    from pathlib import Path

FEW, TIMES = (5_000, 10) if THOROUGH else (4_000, 5)
MORE = {"nested ranges": 100_000, "open ranges": 30_000, "nested calls": 100_000}
"""With `--thorough`, and ten times as many: a million nested ones."""
STEEPEST = 3
"""How much faster than the trace the work may grow: sorts and caches, not every row with every other one."""
PAGE_BYTES = 5 << 20


@pytest.mark.sampled(normal=7)
@pytest.mark.parametrize("shape", WRITERS)
def test_some(shape: str, tmp_path: Path) -> None:
    report = outcome(WRITERS[shape](tmp_path / "trace.sqlite", 700), ALL)
    assert isinstance(report, Report)
    assert len(report.devices) == 1
    assert report.trace.warnings == []


@pytest.mark.thorough
@pytest.mark.parametrize("shape", some(list(WRITERS), 7, 2))
def test_very_many(shape: str, tmp_path: Path) -> None:
    few = MORE.get(shape, FEW) if THOROUGH else FEW
    analyze(WRITERS[shape](tmp_path / "first.sqlite", 10))  # imports what is imported late
    least, _ = spent(WRITERS[shape](tmp_path / "few.sqlite", few))
    most, report = spent(WRITERS[shape](tmp_path / "many.sqlite", few * TIMES))
    assert most < STEEPEST * TIMES * least
    (device,) = report.devices
    assert_exact(device)
    for name, known in FORMATS.items():
        size = len(known.render(report, RenderOptions()))
        assert name != "html" or size < PAGE_BYTES


def spent(trace: Path) -> tuple[float, Report]:
    """The CPU time of an analysis, and its report."""
    before = time.process_time()
    report = analyze(trace)
    return time.process_time() - before, report


@pytest.mark.thorough
@pytest.mark.parametrize("mapped", some([True, False], 2))
def test_more_gpus_than_any_machine_has(mapped: bool, tmp_path: Path) -> None:
    """By their numbers, or as one number of many processes: those with most work are analyzed, and that is said."""
    path, count = tmp_path / "trace.sqlite", 3 * MOST_GPUS
    report = outcome(write_devices(path, count) if mapped else write_processes(path, count, mapped=False))
    assert isinstance(report, Report)
    assert len(report.devices) == MOST_GPUS
    (told,) = [warning for warning in report.trace.warnings if warning.startswith("work on")]
    assert f"only the {MOST_GPUS} with most operations were analyzed" in told
    assert ("--same-gpu" in told) == (not mapped)


@pytest.mark.slow
def test_many_processes_as_one_gpu(tmp_path: Path) -> None:
    path = write_processes(tmp_path / "trace.sqlite", 3 * MOST_GPUS, mapped=False)
    report = analyze(path, Settings(same_gpu=True))
    assert [device.ops.kernel for device in report.devices] == [3 * MOST_GPUS]
    assert report.trace.warnings == []


@pytest.mark.slow
def test_who_ran_is_asked_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that all seem to run all the time: as many pairs as both multiplied, were it not for the bound."""
    asked: list[int] = []
    seen = runs.Runs.seen

    def counted(self: runs.Runs, *arguments: object) -> runs.Seen:
        found = seen(self, *arguments)  # type: ignore[arg-type]
        asked.append(len(found.query))
        return found

    monkeypatch.setattr(runs.Runs, "seen", counted)
    monkeypatch.setattr(runs, "MOST_SEEN", 20_000)
    count = 500
    assert isinstance(outcome(write_threads(tmp_path / "trace.sqlite", count)), Report)
    assert 0 < max(asked) <= 20_000 < count * count / 4


class TestRowsOf:
    def test_each_value_has_its_rows_in_their_order(self) -> None:
        rows = RowsOf(np.array([5, -1, 5, 2**62, -1, 5]))
        assert rows.values() == [-1, 5, 2**62]
        assert [rows[value].tolist() for value in (-1, 5, 2**62, 7)] == [[1, 4], [0, 2, 5], [3], []]

    def test_among_some(self) -> None:
        rows = RowsOf(np.array([5, -1, 5, 9]), [9, 5, 4])
        assert rows.values() == [5, 9]
        assert rows[-1].tolist() == []

    @pytest.mark.parametrize("column", [[], [3, 3, 3]])
    def test_none_and_one(self, column: list[int]) -> None:
        rows = RowsOf(np.array(column, dtype=np.int64))
        assert [rows[value].tolist() for value in rows.values()] == [list(range(len(column)))][: len(column)]
