"""Advice that fits: what was asked for is not asked for again, and things are called what they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze, typed
from nsysdiag.causes.blocking_copy import CAUSE as BLOCKING_COPY
from nsysdiag.causes.sync import CAUSE as SYNC
from nsysdiag.config.settings import Settings
from nsysdiag.events.gpus import gpus_present
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.trace.capabilities import Captured
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

MS = 1_000_000


def with_metadata(path: Path, table: str, rows: list[tuple[str, str]]) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
    return path


def loop() -> TraceBuilder:
    """A loop with time that nothing explains."""
    trace = TraceBuilder().gpu()
    for at in range(10 * MS, 210 * MS, 10 * MS):
        trace.kernel(at, at + 4 * MS, launch=(at - 20_000, at - 10_000))
    return trace


class TestCapture:
    OS_CALLS = ("CAPTURE_EVENT_TYPE", "OSRuntime")

    def recapture(self, tmp_path: Path, table: str = "", *rows: tuple[str, str]) -> str:
        path = loop().write(tmp_path / "t.sqlite")
        return analyze(with_metadata(path, table, list(rows)) if table else path).recapture or ""

    def test_os_calls_are_asked_for_once(self, tmp_path: Path) -> None:
        assert "osrt" in self.recapture(tmp_path)

    def test_not_on_windows(self, tmp_path: Path) -> None:
        told = self.recapture(tmp_path, "TARGET_INFO_SYSTEM_ENV", ("OsDescription", "Windows 11 Pro"))
        assert "osrt" not in told
        assert "--cpuctxsw" in told

    def test_what_was_asked_for_has_no_option(self, tmp_path: Path) -> None:
        path = with_metadata(loop().write(tmp_path / "t.sqlite"), "META_DATA_CAPTURE", [self.OS_CALLS])
        report = analyze(path)
        (found,) = (each for each in report.trace.capabilities if each.id == "os-runtime")
        assert (found.available, found.recapture) == (False, None)
        assert found.why.startswith("asked for at capture")

    def test_what_the_system_refused_is_not_asked_for_again(self, tmp_path: Path) -> None:
        options = [("LINUX_PERF_OPTIONS:COLLECT_CPU_CTXSW_TRACE", "true"), ("X:COLLECT_IP_BACKTRACE_SAMPLES", "true")]
        report = analyze(with_metadata(loop().write(tmp_path / "t.sqlite"), "META_DATA_CAPTURE", options))
        told = " ".join([texts(report), FORMATS["txt"].render(report, RenderOptions()).decode()])
        assert "--trace=cuda,nvtx,osrt --output" in (report.recapture or "")
        assert "nsys status" in told
        assert "--cpuctxsw" not in told
        assert "--sample" not in told

    @pytest.mark.parametrize(
        ("options", "asked"),
        [
            ([("PROCESS_0:COLLECT_GPU_MEMORY_USAGE", "true")], "memory-usage"),
            ([("COLLECT_GPU_CTX_SW_TRACE", "true")], "gpu-context-switch"),
            ([("CAPTURE_EVENT_TYPE", "Cuda")], "kernels"),
            ([("PROCESS_0:COLLECT_CUDA_TRACE", "true")], "cuda-api"),
            ([("CAPTURE_EVENT_TYPE", "NvtxEvents")], "nvtx"),
        ],
    )
    def test_by_the_options(self, options: list[tuple[str, str]], asked: str) -> None:
        assert asked in Captured.of(options, []).asked
        assert Captured.of([("PROCESS_0:COLLECT_CUDA_TRACE", "false")], []).asked == frozenset()

    @pytest.mark.parametrize(
        ("rows", "windows"),
        [
            ([("OsDescription", "Microsoft Windows 10")], True),
            ([("OsDescription", "Ubuntu 22.04")], False),
            ([("Hostname", "windows-box")], False),
        ],
    )
    def test_windows_by_the_system(self, rows: list[tuple[str, str]], windows: bool) -> None:
        assert Captured.of([], rows).windows == windows


class TestAdapters:
    def present(self, tmp_path: Path, *gpus: tuple[str, int]) -> int | None:
        trace = TraceBuilder()
        for number, (name, sms) in enumerate(gpus):
            trace.gpu(number, name, sm_count=sms)
        with open_trace(trace.kernel(0, MS).write(tmp_path / "t.sqlite")) as opened:
            return gpus_present(opened)

    def test_only_those_that_cuda_can_use(self, tmp_path: Path) -> None:
        assert self.present(tmp_path, ("NVIDIA GeForce RTX 4090", 128), ("Intel(R) UHD Graphics 770", 0)) == 1

    def test_two_that_can(self, tmp_path: Path) -> None:
        assert self.present(tmp_path, ("NVIDIA A100-SXM4-80GB", 108), ("NVIDIA A100-SXM4-80GB", 108)) == 2

    def test_a_basic_adapter_where_no_sms_are_known(self, tmp_path: Path) -> None:
        assert self.present(tmp_path, ("Tesla V100", 0), ("Microsoft Basic Display Adapter", 0)) == 1

    def test_several_of_which_no_sms_are_known(self, tmp_path: Path) -> None:
        assert self.present(tmp_path, ("Tesla V100", 0), ("Tesla V100", 0)) == 2


def with_copies(path: Path, kind: str) -> Path:
    """Copies whose sides the export calls pageable (0), which it does where it does not know them."""
    trace = TraceBuilder().gpu()
    for at in range(10 * MS, 210 * MS, 10 * MS):
        trace.kernel(at, at + 2 * MS, launch=(at - 20_000, at - 10_000))
        trace.memcpy(at + 2 * MS, at + 9 * MS, kind=kind, size=1 << 28, launch=(at + MS, at + 9 * MS))
    with closing(sqlite3.connect(trace.write(path))) as connection, connection:
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind = 0, dstKind = 0")
    return path


def texts(report: Report) -> str:
    return " ".join(
        [str(report.diagnosis), *(f"{each.title} {each.advice} {each.evidence}" for each in report.findings)]
    )


class TestPageable:
    def test_never_between_devices(self, tmp_path: Path) -> None:
        report = analyze(with_copies(tmp_path / "t.sqlite", "DtoD"))
        assert "DtoD" in texts(report)
        assert "pageable" not in texts(report)

    def test_a_download_to_it_is(self, tmp_path: Path) -> None:
        report = analyze(with_copies(tmp_path / "t.sqlite", "DtoH"))
        assert "DtoH to pageable" in texts(report)


class TestStart:
    def start(self, *first: tuple[str, int, int]) -> TraceBuilder:
        trace = TraceBuilder().gpu()
        for name, begin, end in first:
            trace.api(name, begin, end)
        trace.kernel(900 * MS, 901 * MS, name="once", launch=(899 * MS, 900 * MS - 10))
        return trace

    def test_a_first_free_is_the_context(self, tmp_path: Path) -> None:
        trace = self.start(("cudaGetDeviceCount", MS, MS + 900), ("cudaFree", 2 * MS, 800 * MS))
        report = analyze(trace.write(tmp_path / "t.sqlite"))
        assert report.diagnosis is not None
        assert report.diagnosis.bottleneck == "startup"
        assert not any(each.bottleneck == "memory" for each in report.findings)

    def test_mpi_init_is_called_so(self, tmp_path: Path) -> None:
        trace = self.start(("cudaGetDeviceCount", MS, MS + 900), ("cudaMalloc", 700 * MS, 702 * MS))
        trace.nvtx("MPI_Init", 2 * MS, 600 * MS)
        report = analyze(trace.write(tmp_path / "t.sqlite"))
        (found,) = (each for each in report.findings if "MPI_Init" in each.title)
        assert found.share > 0.6
        assert "CUDA_MODULE_LOADING" not in " ".join(found.advice)

    def test_compiling_is_called_so(self, tmp_path: Path) -> None:
        trace = self.start(("cudaGetDeviceCount", MS, MS + 900), ("cudaMalloc", 700 * MS, 702 * MS))
        trace.nvtx("Nvrtc::CompileProgram", 2 * MS, 600 * MS)
        report = analyze(trace.write(tmp_path / "t.sqlite"))
        (found,) = (each for each in report.findings if "compiled at run time" in each.title)
        assert any("cache it" in text for text in found.advice)

    def test_compiling_between_kernels_keeps_its_advice(self, tmp_path: Path) -> None:
        """Nothing but CUDA was recorded: what the range says is still known."""
        trace = self.start(("cudaMalloc", 2 * MS, 20 * MS)).nvtx("Nvrtc::CompileProgram", 30 * MS, 890 * MS)
        trace.kernel(25 * MS, 26 * MS, name="before", launch=(24 * MS, 25 * MS - 10))
        report = analyze(trace.write(tmp_path / "t.sqlite"))
        (found,) = (each for each in report.findings if "compiled at run time" in each.title)
        assert any("cache it" in text for text in found.advice)

    def test_lazy_loading_is_said_to_be_the_default(self, tmp_path: Path) -> None:
        report = analyze(self.start(("cudaMalloc", 2 * MS, 800 * MS)).write(tmp_path / "t.sqlite"))
        (found,) = (each for each in report.findings if each.cause == "before_work" and each.bottleneck == "startup")
        assert "default since CUDA 12" in found.advice[0]

    def test_what_is_done_once_saves_its_own_time_at_most_and_maybe_nothing(self, tmp_path: Path) -> None:
        """CUDA starts for 498 ms; then the host computes until the launch, 1 ms before the end."""
        trace = self.start(("cudaMalloc", 2 * MS, 500 * MS)).sched(MS, True)
        report = analyze(trace.sched(899 * MS, True).write(tmp_path / "t.sqlite"))
        found = {each.bottleneck: each for each in report.findings if each.cause == "before_work"}
        for bottleneck, ns in (("startup", 499 * MS), ("host", 399 * MS)):
            saves = found[bottleneck].saves
            assert saves is not None
            assert saves.method == "replay"
            assert (saves.low_ns, saves.high_ns) == (0, pytest.approx(ns, abs=MS // 10))

    @pytest.mark.parametrize(("module", "compiles"), [("libnvidia-ptxjitcompiler.so.1", True), ("libcuda.so.1", False)])
    def test_a_call_that_compiles_ptx_is_named(self, module: str, compiles: bool, tmp_path: Path) -> None:
        """One of six CPU samples in the launch is elsewhere; the allocation has none."""
        trace = self.start(("cudaMalloc", 2 * MS, 500 * MS), ("cudaLaunchKernel", 520 * MS, 640 * MS))
        for at in range(530, 620, 15):
            trace.sample(at * MS, symbols=("0x7f00",), module=module if at > 530 else "libc.so.6")
        report = analyze(trace.write(tmp_path / "t.sqlite"))
        (found,) = (each for each in report.findings if each.cause == "before_work" and each.bottleneck == "startup")
        said = typed.plain(found.advice[0])
        expected = (
            "cudaLaunchKernel compiles PTX, for 121 ms: 5 of 6 CPU samples in it are in the compiler of the driver."
        )
        assert said.startswith(expected) == compiles
        assert "PTX" in said or not compiles
        assert typed.plain(found.chain[0]).endswith(": cudaMalloc 498 ms and cudaLaunchKernel 121 ms")


@pytest.mark.parametrize(
    ("framework", "word"), [("openmp-target", "nowait"), ("julia", "CuArray"), ("openacc", "async")]
)
def test_in_the_words_of_the_program(framework: str, word: str) -> None:
    for cause in (SYNC, BLOCKING_COPY):
        assert word in " ".join(cause.words.advice_for().sentences([framework, "mpi"]))


def test_a_place_has_most_of_all_that_the_host_did(tmp_path: Path) -> None:
    """Behind each synchronization the host is in three ranges, and the first is charged to the synchronization. What is
    left is mostly in the second, which is a third of the whole."""
    simulation = Simulation()

    def body(t: Thread) -> Body:
        for _ in range(20):
            for name, ns in (("softmax", 2_000_000), ("gather", 1_750_000), ("norm", 1_250_000)):
                t.push(name)
                yield from t.compute(ns)
                t.pop()
            yield from t.launch("k", 2_000_000)
            yield from t.synchronize()

    simulation.thread(simulation.process(), body)
    report = analyze(simulation.run().write(tmp_path / "t.sqlite"), Settings(replay=False, timeline=False))
    (found,) = (each for each in report.findings if each.cause == "host_compute")
    assert found.lost_share > found.share + 0.1
    assert "gather" not in typed.plain(found.title)
