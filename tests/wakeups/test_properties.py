"""What holds for any waits and wake-ups: the same total, every piece inside its gap, and order of no matter."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysdiag.config.settings import Settings
from nsysdiag.messages import UsageError
from nsysdiag.pipeline import analyze
from nsysdiag.pipeline.analysis import analyze_devices
from nsysdiag.trace.trace import open_trace
from tests.builder import MAIN, TraceBuilder
from tests.gaps.test_gaps import unpacked
from tests.levels import examples

if TYPE_CHECKING:
    from tests.builder import ThreadId

EXAMPLES = examples(80)
TICKS = 40
UNITS = (900, 30_000, 400_000)
THREADS: tuple[ThreadId, ...] = (MAIN, (4242, 4300), (4242, 4301), (4242, 4302), (5000, 5000), (5000, 5001), (0, 0))
WAITS = ("sem_wait", "pthread_cond_wait", "pthread_cond_timedwait", "read", "poll", "pthread_join", "waitpid")
WAKES = ("sem_post", "pthread_cond_signal", "pthread_cond_broadcast", "write", "pthread_mutex_unlock", "pthread_exit")
NAMES = ("pt_data_worker", "worker", "[NSys]", "loader")
DISABLED = ("lock_wait", "host_compute", "io_wait", "data_loading", "off_cpu", "sync")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the host side; what `name` and `flag` mean depends on its kind."""

    kind: str
    thread: ThreadId
    start: int
    end: int
    name: int
    flag: bool


@dataclass(frozen=True, slots=True)
class Wakes:
    """What one trace holds: kernels with gaps between them, launched from several threads, and rows of all threads."""

    unit: int
    launches: list[tuple[int, ThreadId, int]]
    rows: list[Row]
    dropped: list[str]
    schema: str

    def trace(self) -> TraceBuilder:
        unit = self.unit
        trace = TraceBuilder(schema=self.schema, duration=(TICKS + 40) * unit)
        for start, thread, device in self.launches:
            launch = ((start - 1) * unit, start * unit)
            trace.kernel(start * unit, (start + 1) * unit, launch=launch, thread=thread, device=device)
        for row in self.rows:
            _add(trace, row)
        for table in self.dropped:
            trace.drop_table(table)
        return trace


def _add(trace: TraceBuilder, row: Row) -> None:
    start, end = row.start, row.end
    if row.kind == "osrt":
        names = WAITS + WAKES
        trace.osrt(names[row.name % len(names)], start, end, thread=row.thread)
    elif row.kind == "sched":
        trace.sched(start, row.flag, thread=row.thread, cpu=row.name % 3)
    elif row.kind == "sample":
        trace.sample(start, thread=row.thread, symbols=("_worker_loop",) if row.flag else ("main",))
    elif row.kind == "nvtx":
        trace.nvtx("next(dataloader)" if row.flag else "step", start, end, thread=row.thread)
    elif row.kind == "name":
        trace.thread_name(NAMES[row.name % len(NAMES)], thread=row.thread)
    elif row.kind == "process":
        trace.process(row.thread[0], ("/usr/bin/python3", "/usr/bin/other")[row.name % 2])


KINDS = ("osrt", "osrt", "osrt", "osrt", "sched", "sched", "sched", "sample", "nvtx", "name", "process")
SCHEMAS = ("2020", "2.9.1", "3.13.2", "3.24.8")
TABLES = ("SCHED_EVENTS", "OSRT_API", "ThreadNames", "PROCESSES", "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS")


@st.composite
def rows(draw: st.DrawFn, unit: int) -> list[Row]:
    """One row, or a wait with the rows that usually come with it: off the CPU, and a wake call at its end."""
    kind, thread, name = draw(st.sampled_from(KINDS)), draw(st.sampled_from(THREADS)), draw(st.integers(0, 20))
    start = draw(st.integers(-2, TICKS + 5)) * unit
    end = start + draw(st.sampled_from((1, 2, 3, 5, 8, 13, 0, -1, 200))) * unit
    flag = draw(st.booleans())
    if kind != "osrt":
        return [Row(kind, thread, start, end, name, flag)]
    if draw(st.integers(0, 30)) == 0:
        return [Row(kind, thread, draw(st.sampled_from((start, -(2**63), 2**63 - 1))), 2**63 - 1, name, flag)]
    found = [Row(kind, thread, start, end, name, flag)]
    if flag:
        found += [Row("sched", thread, start, start, 0, flag=False), Row("sched", thread, end, end, 0, flag=True)]
    if draw(st.booleans()):
        other, wake = draw(st.sampled_from(THREADS)), draw(st.integers(len(WAITS), len(WAITS) + len(WAKES) - 1))
        at = end + draw(st.sampled_from((-10_000, -10_000, 10_000, -50_000, 0, 20_000)))
        found.append(Row(kind, other, at, at + 2_000, wake, flag))
    return found


@st.composite
def wakes(draw: st.DrawFn) -> Wakes:
    """One trace."""
    unit = draw(st.sampled_from(UNITS))
    starts = draw(st.lists(st.integers(1, TICKS), min_size=2, max_size=6, unique=True))
    by = st.sampled_from((MAIN, MAIN, MAIN, THREADS[1], THREADS[4]))
    launches = [(start, draw(by), draw(st.sampled_from((0, 0, 1)))) for start in starts]
    found = [row for _ in range(draw(st.integers(1, 14))) for row in draw(rows(unit))]
    dropped = draw(st.lists(st.sampled_from(TABLES), max_size=2)) if draw(st.booleans()) else []
    return Wakes(unit, launches, found, dropped, draw(st.sampled_from(SCHEMAS)))


@contextmanager
def written(drawn: Wakes, shuffle_seed: int | None = None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield drawn.trace().write(Path(folder) / "trace.sqlite", shuffle_seed=shuffle_seed)


@pytest.mark.slow
@given(wakes(), st.sampled_from((0.0, 0.3, 0.5)))
@settings(max_examples=EXAMPLES)
def test_every_gap_is_cut_whole(drawn: Wakes, floor: float) -> None:
    """The pieces by root lie in the gaps, one behind the other, without a hole."""
    given = Settings(gaps=0, timeline=False)
    given = msgspec.structs.replace(given, thresholds=msgspec.structs.replace(given.thresholds, root_floor=floor))
    with written(drawn) as path, open_trace(path) as trace:
        results = analyze_devices(trace, given).devices
    for result in results:
        device, rows = result.report, result.slices.rows
        assert sum(device.root_ledger.values()) == sum(device.ledger.values()) == device.idle_ns
        assert all(sum(kinds.values()) <= device.root_ledger[cause] for cause, kinds in device.root_labels.items())
        gaps = [(start, start + length) for start, length, _ in unpacked(device.gaps_packed)]
        order = np.lexsort((rows.start, rows.gap))
        for number, gap in enumerate(gaps):
            mine = order[rows.gap[order] == number]
            borders = [gap[0], *rows.end[mine].tolist()]
            assert borders == [*rows.start[mine].tolist(), gap[1]]
        for gap in device.gaps:
            if gap.root is not None:
                assert 0 <= gap.root.confidence <= 1
                assert all(hop.confidence > 0 for hop in gap.root.hops)


@pytest.mark.thorough
@given(wakes(), st.integers(0, 3))
@settings(max_examples=EXAMPLES)
def test_the_order_of_rows_means_nothing(drawn: Wakes, seed: int) -> None:
    given = Settings(gaps=0, timeline=False)
    with written(drawn) as path, written(drawn, seed) as other:
        plain, shuffled = analyze(path, given), analyze(other, given)
    for one, another in zip(plain.devices, shuffled.devices, strict=True):
        assert one.root_ledger == another.root_ledger
        assert one.root_labels == another.root_labels
        assert [gap.root for gap in one.gaps] == [gap.root for gap in another.gaps]
    assert plain.findings == shuffled.findings


@pytest.mark.slow
@given(wakes(), st.integers(0, TICKS), st.integers(1, TICKS))
@settings(max_examples=EXAMPLES)
def test_a_narrowed_window_adds_up(drawn: Wakes, start: int, length: int) -> None:
    given = Settings(start_ns=start * drawn.unit, end_ns=(start + length) * drawn.unit, gaps=0, timeline=False)
    with written(drawn) as path:
        try:
            report = analyze(path, given)
        except UsageError:
            return
    for device in report.devices:
        assert sum(device.root_ledger.values()) == device.idle_ns


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize("cause", DISABLED)
@given(drawn=wakes())
@settings(max_examples=examples(20))
def test_a_disabled_cause_is_nobody_s_root(cause: str, drawn: Wakes) -> None:
    with written(drawn) as path:
        report = analyze(path, Settings(disabled=(cause,), gaps=0, timeline=False))
    for device in report.devices:
        assert cause not in device.root_ledger
        assert sum(device.root_ledger.values()) == device.idle_ns
