"""Copies against their limits, pageable beside pinned, exposed ones by what forbids to overlap, tiny ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from nsysdiag.config.settings import MemoryThresholds, Settings
from tests.builder import TraceBuilder
from tests.ledger.arbitrary import rows
from tests.ledger.test_properties import report_of
from tests.ledger.traces import only_device
from tests.levels import examples

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.memory.facts import Copies, ExposedCopies
    from tests.ledger.arbitrary import Rows

US, MS = 1_000, 1_000_000
KIB, MIB = 1 << 10, 1 << 20


class Timeline:
    """Operations one behind the other on the device, launched in the same order."""

    def __init__(self) -> None:
        self.trace = TraceBuilder()
        self.now = 10 * MS
        self.calls = 1_000

    def copy(self, ns: int, size: int, **options: object) -> Timeline:
        return self._next(self.trace.memcpy, ns, size=size, **options)

    def kernel(self, ns: int, **options: object) -> Timeline:
        return self._next(self.trace.kernel, ns, **options)

    def _next(self, add: object, ns: int, **options: object) -> Timeline:
        launch = options.pop("launch", (self.calls, self.calls + 100))
        add(self.now, self.now + ns, launch=launch, **options)  # type: ignore[operator]
        self.now, self.calls = self.now + ns, self.calls + 200
        return self


def copies_of(made: Timeline, folder: Path, settings: Settings | None = None) -> Copies:
    return only_device(made.trace, folder, settings).copies


# ---- rates -----------------------------------------------------------------------------------------------------


def test_large_copies_show_what_the_link_can_do(tmp_path: Path) -> None:
    """
    HtoD  1,000,000 ns each: 24, 20 and 8 MB; one of 1 MiB - 1 B in 10 ns shows nothing. DtoH: small ones only.
    """
    made = Timeline().copy(MS, 24_000_000).copy(MS, 20_000_000).copy(MS, 8_000_000).copy(10, MIB - 1)
    made.copy(US, 5_000, kind="DtoH").kernel(US)
    by_direction = {row.direction: row for row in copies_of(made, tmp_path).rates}
    assert list(by_direction) == ["HtoD", "DtoH"]
    up = by_direction["HtoD"]
    assert (up.count, up.total_ns, up.bytes) == (4, 3 * MS + 10, 52_000_000 + MIB - 1)
    assert (up.large_count, up.large_pageable, up.best_bytes_per_second) == (3, 0, pytest.approx(24e9))
    assert up.limit_bytes_per_second is None
    assert up.slow_ns == MS
    assert up.exceeds_pcie == 3
    down = by_direction["DtoH"]
    assert (down.large_count, down.best_bytes_per_second, down.slow_ns, down.exceeds_pcie) == (0, None, None, 0)


def test_the_best_rate_leaves_the_fastest_twentieth_out(tmp_path: Path) -> None:
    """20 copies of 2 to 40 GB/s: 19 of them, 95%, do not exceed 38."""
    made = Timeline()
    for step in range(20):
        made.copy(MS, (step + 1) * 2_000_000)
    (row,) = copies_of(made.kernel(US), tmp_path).rates
    assert row.best_bytes_per_second == pytest.approx(38e9)
    assert row.exceeds_pcie == 4
    assert row.slow_ns == 9 * MS  # below 19 GB/s: 2 to 18


def test_copies_on_the_device_have_half_the_bandwidth_of_its_memory(tmp_path: Path) -> None:
    """2,000 GB/s: a copy of 600 GB/s is fast enough, one of 499 is not, and 500 is."""
    made = Timeline()
    made.trace.gpu(0, bandwidth=2_000_000_000_000)
    made.copy(MS, 600_000_000, kind="DtoD").copy(MS, 500_000_000, kind="DtoD").copy(MS, 499_000_000, kind="DtoD")
    (row,) = copies_of(made.kernel(US), tmp_path).rates
    assert (row.direction, row.limit_bytes_per_second, row.slow_ns) == ("DtoD", 1e12, MS)
    assert row.exceeds_pcie == 0


def test_what_counts_as_slow_and_large_are_settings(tmp_path: Path) -> None:
    made = Timeline().copy(MS, 2_000).copy(MS, 1_600).kernel(US)
    changed = Settings(memory=MemoryThresholds(large_copy=2_000, slow_copy=0.9))
    (row,) = copies_of(made, tmp_path, changed).rates
    assert (row.large_count, row.best_bytes_per_second, row.slow_ns) == (1, pytest.approx(2e6), MS)
    assert changed.changed() == {"memory": {"large_copy": 2000, "slow_copy": 0.9}}


def test_large_copies_outside_a_narrowed_window_show_the_link_too(tmp_path: Path) -> None:
    made = Timeline().copy(MS, 20_000_000).copy(MS, 2_000_000).kernel(US)
    (row,) = copies_of(made, tmp_path, Settings(start_ns=11 * MS)).rates
    assert (row.count, row.large_count, row.best_bytes_per_second, row.slow_ns) == (1, 2, pytest.approx(20e9), MS)


def test_migrations_and_sets_are_no_copies(tmp_path: Path) -> None:
    made = Timeline().copy(MS, 20_000_000, kind="UM HtoD").kernel(US)
    made.trace.memset(made.now, made.now + US, launch=(5_000, 5_100))
    copies = copies_of(made, tmp_path)
    assert (copies.rates, copies.pinning, copies.tiny) == ([], None, None)


# ---- pageable and pinned -----------------------------------------------------------------------------------------


def test_what_pinning_would_save_at_most(tmp_path: Path) -> None:
    """
    HtoD from 1 MiB      pageable  8 MB in 4,000,000 ns: 2 GB/s     pinned  8 MB in 1,000,000 ns: 8 GB/s     3,000,000
    HtoD from 64 KiB     pageable  0.1 MB in 100,000 ns             none                                     not told
    DtoH from 1 MiB      pageable  4 MB in 1,000,000 ns             pinned 2 MB in 1,000,000 ns: slower      0
    """
    made = Timeline().copy(4 * MS, 8_000_000, host="pageable").copy(MS, 8_000_000)
    made.copy(100 * US, 100_000, host="pageable")
    made.copy(MS, 4_000_000, kind="DtoH", host="pageable").copy(MS, 2_000_000, kind="DtoH").kernel(US)
    found = copies_of(made, tmp_path).pinning
    assert found is not None
    assert (found.pageable_count, found.pageable_ns, found.pageable_bytes) == (3, 5_100_000, 12_100_000)
    assert (found.pinned_count, found.pinned_ns, found.pinned_bytes) == (2, 2_000_000, 10_000_000)
    assert (found.compared_ns, found.saving_ns) == (5_000_000, 3_000_000)
    assert [(row.direction, row.from_bytes, row.saving_ns) for row in found.rows] == [
        ("HtoD", MIB, 3_000_000),
        ("DtoH", MIB, 0),
        ("HtoD", 64 * KIB, None),
    ]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("size", "begins"), [(1, 0), (15, 0), (16, 16), (255, 16), (MIB - 1, 64 * KIB), (MIB, MIB)])
def test_classes_of_sizes(size: int, begins: int, tmp_path: Path) -> None:
    found = copies_of(Timeline().copy(US, size, host="pageable").kernel(US), tmp_path).pinning
    assert found is not None
    assert [row.from_bytes for row in found.rows] == [begins]


@pytest.mark.slow
def test_without_pinned_copies_nothing_is_claimed(tmp_path: Path) -> None:
    found = copies_of(Timeline().copy(MS, MIB, host="pageable").kernel(US), tmp_path).pinning
    assert found is not None
    assert (found.compared_ns, found.saving_ns) == (0, None)


def test_without_pageable_copies_there_is_nothing_to_pin(tmp_path: Path) -> None:
    assert copies_of(Timeline().copy(MS, MIB).kernel(US), tmp_path).pinning is None


# ---- exposed -----------------------------------------------------------------------------------------------------


def told(rows: list[ExposedCopies]) -> list[tuple[object, ...]]:
    return [(row.operation, row.host_memory, row.ordered, row.call, row.count, row.exposed_ns) for row in rows]


def test_a_copy_in_the_stream_of_the_kernels(tmp_path: Path) -> None:
    """
    stream 7   [==A==)[copy: 5 µs)[==B==)
    """
    made = Timeline().kernel(US).copy(5 * US, MIB).kernel(US)
    assert told(copies_of(made, tmp_path).exposed) == [("memcpy HtoD", "pinned", True, "async", 1, 5_000)]


def test_a_copy_in_a_stream_of_its_own(tmp_path: Path) -> None:
    """
    stream 7   [==A==)            [==B==)
    stream 9          [copy: 5 µs)
    """
    made = Timeline().kernel(US).copy(5 * US, MIB, stream=9).kernel(US)
    assert told(copies_of(made, tmp_path).exposed) == [("memcpy HtoD", "pinned", False, "async", 1, 5_000)]


@pytest.mark.parametrize(("before", "behind", "ordered"), [(7, 9, True), (9, 7, True), (8, 9, False)])
def test_one_kernel_beside_it_is_enough(before: int, behind: int, ordered: bool, tmp_path: Path) -> None:
    made = Timeline().kernel(US, stream=before).copy(5 * US, MIB, stream=7).kernel(US, stream=behind)
    (row,) = copies_of(made, tmp_path).exposed
    assert row.ordered is ordered


@pytest.mark.parametrize(("flag", "ordered"), [(1, True), (2, False)])
def test_the_default_stream_waits_for_blocking_streams(flag: int, ordered: bool, tmp_path: Path) -> None:
    """The copy is on the legacy default stream 7, the kernels on stream 9, which is blocking (1) or not (2)."""
    made = Timeline().kernel(US, stream=9).copy(5 * US, MIB, stream=7).kernel(US, stream=9)
    made.trace.null_stream(7).stream_info(9, flag)
    (row,) = copies_of(made, tmp_path).exposed
    assert row.ordered is ordered


def test_without_kernels_nothing_orders(tmp_path: Path) -> None:
    made = Timeline().copy(5 * US, MIB).copy(3 * US, MIB, kind="DtoH", api="cudaMemcpy")
    assert told(copies_of(made, tmp_path).exposed) == [
        ("memcpy HtoD", "pinned", None, "async", 1, 5_000),
        ("memcpy DtoH", "pinned", None, "blocking", 1, 3_000),
    ]


def test_migrations_are_in_no_order(tmp_path: Path) -> None:
    made = Timeline().kernel(US).copy(5 * US, MIB, kind="UM HtoD").kernel(US)
    assert told(copies_of(made, tmp_path).exposed) == [("unified memory HtoD", None, None, None, 1, 5_000)]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("api", "call"),
    [("cudaMemcpyAsync", "async"), ("cudaMemcpy", "blocking"), ("cudaGraphLaunch", "graph"), (None, None)],
)
def test_by_call(api: str | None, call: str | None, tmp_path: Path) -> None:
    options = {"launch": None} if api is None else {"api": api}
    made = Timeline().kernel(US).copy(5 * US, MIB, **options).kernel(US)
    (row,) = copies_of(made, tmp_path).exposed
    assert row.call == call


def test_what_kernels_hide_is_not_exposed(tmp_path: Path) -> None:
    """
    stream 7   [10 ms ==== A ==== 10.010 ms)
    stream 9            [10.005 ===== copy ===== 10.020 ms)        10 µs of 15 are exposed
    stream 8   [10.001 .. 10.002: hidden)
    """
    trace = TraceBuilder().kernel(10_000_000, 10_010_000, launch=(1_000, 1_100))
    trace.memcpy(10_005_000, 10_020_000, stream=9, launch=(2_000, 2_100))
    trace.memcpy(10_001_000, 10_002_000, stream=8, kind="DtoH", launch=(1_200, 1_300))
    device = only_device(trace, tmp_path)
    assert device.exposed_copy_ns == 10_000
    assert told(device.copies.exposed) == [("memcpy HtoD", "pinned", False, "async", 1, 10_000)]
    assert device.copies.exposed[0].total_ns == 15_000


def test_time_of_several_at_once_counts_once(tmp_path: Path) -> None:
    """
    stream 8   [10 ms === HtoD: 20 µs ===)
    stream 9         [10.010 == DtoH: 15 µs ==)       the time of both is that of the one with more in all
    """
    trace = TraceBuilder().memcpy(10_000_000, 10_020_000, stream=8, launch=(1_000, 1_100))
    trace.memcpy(10_010_000, 10_025_000, stream=9, kind="DtoH", launch=(2_000, 2_100))
    rows_found = only_device(trace, tmp_path).copies.exposed
    assert [(row.operation, row.exposed_ns) for row in rows_found] == [("memcpy HtoD", 20_000), ("memcpy DtoH", 5_000)]


@pytest.mark.slow
@given(rows())
@settings(max_examples=examples(60))
def test_exposed_copies_add_up_for_any_rows(drawn: Rows) -> None:
    for device in report_of(drawn).devices:
        assert sum(row.exposed_ns for row in device.copies.exposed) == device.exposed_copy_ns
        assert all(row.exposed_ns > 0 for row in device.copies.exposed)
        assert sum(row.count for row in device.copies.rates) <= device.ops.memcpy


# ---- tiny ------------------------------------------------------------------------------------------------------


def test_tiny_copies_at_their_border(tmp_path: Path) -> None:
    """
    4,095 B and 1 B are tiny, 4,096 B is not; of 0 B nobody knows how large it is. Two calls wait, one is not known.
    """
    made = Timeline().copy(2 * US, 4_095).copy(US, 4_096).copy(US, 0).kernel(US)
    made.copy(4 * US, 1, kind="DtoH", api="cudaMemcpy", launch=(3_000, 3_070)).copy(3 * US, 8, launch=None).kernel(US)
    made.copy(US, 2, host="pageable", launch=(4_000, 4_030))
    tiny = copies_of(made, tmp_path).tiny
    assert tiny is not None
    assert (tiny.below_bytes, tiny.count, tiny.bytes, tiny.total_ns) == (4_096, 4, 4_106, 10_000)
    assert (tiny.called, tiny.call_ns, tiny.blocking, tiny.blocking_ns) == (1, 100, 2, 100)
    assert tiny.launches == 7
    assert tiny.per_iteration is None


def test_tiny_copies_of_an_iteration(tmp_path: Path) -> None:
    """Six iterations with two tiny copies each; the last is no steady one, as nothing ends it."""
    trace = TraceBuilder()
    for number in range(6):
        start = (number + 1) * MS
        trace.nvtx("step", start, start + 950_000).kernel(start + 20_000, start + 800_000, launch=(start, start + 500))
        for at in (810_000, 820_000):
            trace.memcpy(start + at, start + at + 1_000, size=8, launch=(start + at - 20_000, start + at - 19_000))
    device = only_device(trace, tmp_path)
    assert device.iterations is not None
    assert device.iterations.steady == 5
    assert device.copies.tiny is not None
    assert (device.copies.tiny.count, device.copies.tiny.per_iteration) == (12, 2.0)


def test_migrations_and_nodes_of_graphs_are_not_tiny_copies(tmp_path: Path) -> None:
    made = Timeline().copy(US, 8, kind="UM DtoH").kernel(US).copy(US, 8)
    made.trace._rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1]["graphNodeId"] = 5
    assert copies_of(made, tmp_path).tiny is None


def test_no_copies_at_all(tmp_path: Path) -> None:
    copies = copies_of(Timeline().kernel(US), tmp_path)
    assert (copies.rates, copies.pinning, copies.exposed, copies.tiny) == ([], None, [], None)


def test_tiny_copies_without_calls_make_nobody_wait(tmp_path: Path) -> None:
    tiny = copies_of(Timeline().kernel(MS).copy(US, 8, launch=None).copy(US, 8, launch=None), tmp_path).tiny
    assert tiny is not None
    assert (tiny.count, tiny.called, tiny.call_ns, tiny.blocking, tiny.blocking_ns) == (2, 0, 0, 0, 0)
