"""The kernels with most time of a set of operations: counts and shares by hand, shapes, metrics, the command of ncu."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from nsysdiag import typed
from nsysdiag.arrays.intervals import BoolArray, Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.counters.facts import KernelMetrics
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.nvtx import read_ranges
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from nsysdiag.kernels.kernels import ncu_command, top_kernels
from nsysdiag.kernels.kinds import kernel_families
from nsysdiag.memory.copies import top_copies
from nsysdiag.memory.facts import TopCopy
from nsysdiag.pipeline.reading import read_activity
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder

OPENED = ExitStack()
FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))


class Looked:
    """The first device of a trace, while it is open."""

    def __init__(self, activity: DeviceActivity, strings: Strings) -> None:
        self.activity, self.device, self.strings = activity, activity.devices[0], strings

    def all(self) -> BoolArray:
        return np.ones(len(self.device.operations), dtype=np.bool_)

    def between(self, start: int, end: int) -> BoolArray:
        found: BoolArray = (self.device.operations.start >= start) & (self.device.operations.start < end)
        return found

    def top(
        self, parts: tuple[int, int] = (0, 1 << 40), most: int = 5, measured: tuple[KernelMetrics, ...] = ()
    ) -> list[TopKernel]:
        judged = Intervals.of([parts])
        return top_kernels(self.device, judged, parts[1] - parts[0], self.activity.shapes, self.strings, measured, most)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Traces are open as long as a test looks at them."""
    yield
    OPENED.close()


def looked_at(path: Path) -> Looked:
    trace = OPENED.enter_context(open_trace(path))
    return Looked(read_activity(trace, lambda: read_ranges(trace), Settings()), trace.strings)


def steps() -> TraceBuilder:
    """
    big     600 at 1_000, 2_000 ...      five times, 60 blocks of 512 threads
    small   100 at 1_700, 2_700 ...      five times
    """
    trace = TraceBuilder().gpu(sm_count=108)
    for at in range(1_000, 6_000, 1_000):
        trace.kernel(at, at + 600, name="big", launch=(at - 300, at - 200), shape={"gridX": 60, "blockX": 512})
        trace.kernel(at + 700, at + 800, name="small", launch=(at - 150, at - 100))
    return trace


class TestTopKernels:
    def test_by_hand(self, tmp_path: Path) -> None:
        big, small = looked_at(steps().write(tmp_path / "t.sqlite")).top((1_000, 6_000))
        assert (big.name, big.short_name, big.family) == ("big", "big", "other")
        assert (big.count, big.total_ns, big.mean_ns, big.share) == (5, 3_000, 600, 0.6)
        assert (big.blocks, big.threads, big.registers, big.shapes) == (60, 512, 32, 1)
        assert (big.sm_share, big.limit) == (round(60 / 108, 6), "grid too small")
        assert typed.plain(big.ncu) == "ncu --set full --kernel-name big --launch-skip 2 --launch-count 1 PROGRAM"
        assert (small.count, small.total_ns, small.blocks) == (5, 500, 108)

    def test_a_part_of_the_operations(self, tmp_path: Path) -> None:
        """Two of the steps; the command still counts from the first launch of the program."""
        looked = looked_at(steps().write(tmp_path / "t.sqlite"))
        big, small = looked.top((4_000, 6_000))
        assert (big.count, small.count, big.share) == (2, 2, 0.6)
        assert "--launch-skip 4 " in big.ncu
        assert looked.top(most=1) == [looked.top()[0]]

    def test_nothing_ran(self, tmp_path: Path) -> None:
        looked = looked_at(steps().write(tmp_path / "t.sqlite"))
        assert looked.top((7_000, 8_000)) == []
        assert kernel_families(looked.device, ~looked.all(), looked.strings) == KernelFamilies()

    def test_instances_of_a_template_are_one(self, tmp_path: Path) -> None:
        trace = TraceBuilder()
        for number in range(4):
            name = f"void mine::apply<4, mine::step(int)::[lambda(int) (instance {number})]>(int)"
            trace.kernel(1_000 * number + 500, 1_000 * number + 700, name="apply", demangled=name, launch=(1, 2))
        (found,) = looked_at(trace.write(tmp_path / "t.sqlite")).top()
        assert (found.count, found.total_ns, found.short_name) == (4, 800, "apply")

    def test_without_a_shape(self, tmp_path: Path) -> None:
        trace = TraceBuilder().kernel(1_000, 2_000, launch=(1, 2), shape={"gridX": 0})
        (found,) = looked_at(trace.write(tmp_path / "t.sqlite")).top()
        assert (found.blocks, found.sm_share, found.limit) == (None, None, None)

    def test_what_was_measured(self, tmp_path: Path) -> None:
        means = {"sm_active": 0.9, "tensor_active": None, "dram_read": 0.3, "dram_write": 0.25}
        measured = KernelMetrics(
            name="big(float *, int)",
            short_name="big",
            count=5,
            long_count=5,
            gpu_ns=3_000,
            samples=9,
            whole=True,
            means=means,
        )
        big, small = looked_at(steps().write(tmp_path / "t.sqlite")).top(measured=(measured,))
        assert (big.sm_active, big.tensor_active, big.dram_active, big.measured_whole) == (0.9, None, 0.55, True)
        assert (small.sm_active, small.dram_active, small.measured_whole) == (None, None, False)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("gemm", "gemm"),
        ("operator()", "operator()"),
        ("a; rm -rf /", "a; rm -rf /"),
        ("$(reboot)", "$(reboot)"),
        ("it's", None),
        ("two\nlines", None),
    ],
)
def test_a_shell_takes_the_command_as_it_is(name: str, word: str | None) -> None:
    words = shlex.split(typed.plain(ncu_command(name, 3)))
    chosen = [] if word is None else ["--kernel-name", word]
    assert words == ["ncu", "--set", "full", *chosen, "--launch-skip", "3", "--launch-count", "1", "PROGRAM"]


class TestFamiliesAndCopies:
    def test_shares_of_the_kernels_time(self, tmp_path: Path) -> None:
        trace = TraceBuilder()
        kernels = [
            ("ampere_sgemm_128x64_tn", 400),
            ("nvjet_tst_64x8_NNN", 200),
            ("flash_fwd_kernel", 100),
            ("mine", 100),
        ]
        start = 1_000
        for name, length in [*kernels, ("vectorized_elementwise_kernel", 100), ("ncclDevKernel_AllReduce", 100)]:
            trace.kernel(start, start + length, name=name, launch=(1, 2))
            start += 1_000
        looked = looked_at(trace.write(tmp_path / "t.sqlite"))
        assert kernel_families(looked.device, looked.all(), looked.strings) == KernelFamilies(
            total_ns=1_000,
            products=0.6,
            products_fp32=0.4,
            attention=0.1,
            elementwise=0.1,
            communication=0.1,
            other=0.1,
        )

    def test_copies_by_kind(self, tmp_path: Path) -> None:
        trace = TraceBuilder().memset(9_000, 9_100, size=64)
        for at in (1_000, 2_000, 3_000):
            trace.memcpy(at, at + 300, kind="HtoD", host="pageable", size=3_000, launch=(at - 9, at - 8))
        looked = looked_at(trace.write(tmp_path / "t.sqlite"))
        first, second = top_copies(looked.device, looked.all())
        assert first == TopCopy(
            operation="memcpy HtoD",
            src="pageable",
            dst="device",
            share=0.9,
            count=3,
            total_ns=900,
            bytes=9_000,
            mean_bytes=3_000,
            bytes_per_second=1e10,
        )
        assert (second.operation, second.count) == ("memset", 1)
        (part,) = top_copies(looked.device, looked.between(1_500, 5_000))
        assert (part.count, part.share) == (2, 1.0)
        assert top_copies(looked.device, ~looked.all()) == []


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "kernel", "count"),
    [
        ("nways_jacobi", "jacobi_kernel", 1_000),
        ("pipit_saxpy-mpi", "saxpy", 5),
        ("pipit_cloverleaf", "par_ranged2d_kernel<advec_mom_kernel>", 160),
        ("nsysai_mfu-2gpu-before", "flash_fwd_kernel", 34),
        ("mordred", "probe_GPU2", 3),
    ],
)
def test_first_kernels_of_real_traces(name: str, kernel: str, count: int) -> None:
    found = [path for path in FOLDER.glob("*.sqlite") if path.name.startswith(name)]
    if not found:
        pytest.skip(f"{name} is not at hand")
    first = looked_at(found[0]).top()[0]
    assert first.name.startswith(kernel)
    assert first.count == count
