"""Captures that begin in the middle of a run: no start-up, and one step is judged as one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze, typed
from nsysdiag.iterations.named import layers_named
from nsysdiag.trace.format import MARK
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

US, MS = 1_000, 1_000_000
LAYER = ("rms_norm", "gemm_qkv", "flash_fwd_kernel", "gemm_out", "silu_and_mul")
BEHIND = "time before the first complete step, in which the trace does not show what the GPU did"


def a_pass(
    trace: TraceBuilder, issued: int, start: int, layers: int = 12, *, launched: bool = True, slow: int = 0
) -> int:
    """An embedding, so many layers of 1 ms and a head of 2 ms; launched from `issued` on, or before the capture.
    Returns when it ends. `slow`: the host takes so long before each kernel of a name."""
    at, call, of = start, issued, len(LAYER)
    names = [("embedding", 200 * US), *([(name, 200 * US) for name in LAYER] * layers), ("lm_head", 2 * MS)]
    for number, (name, length) in enumerate(names):
        if slow and number % of in (1, 3):
            call, at = call + slow, at + slow
        launch = (call, call + 5 * US) if launched else None
        trace.kernel(at, at + length, name=name, launch=launch, correlation=None if launched else number + 1)
        at, call = at + length, call + 10 * US
    return at


def analyzed(trace: TraceBuilder, tmp_path: Path, *, profiled: bool = False, **settings: str) -> Report:
    """`profiled`: as a trace of the PyTorch profiler, which begins in the middle of a run."""
    path = trace.write(tmp_path / "trace.sqlite")
    if profiled:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("INSERT INTO META_DATA_EXPORT VALUES (?, '1')", (MARK,))
            connection.commit()
    return analyze(path, Settings(timeline=False, **settings))


def traced() -> TraceBuilder:
    return TraceBuilder().process().gpu()


def test_work_that_waited_for_work_before_the_capture_is_no_idle_time(tmp_path: Path) -> None:
    """
    calls     [launches of one step]
    device                          ......150 ms......[step ]
    """
    trace = traced()
    end = a_pass(trace, MS, 150 * MS)
    report = analyzed(trace, tmp_path)
    (device,) = report.devices
    assert (device.window.start_ns, device.window.end_ns) == (150 * MS, end)
    assert device.idle_ns == 0
    assert "start-up" not in [phase.name for phase in report.phases]
    assert BEHIND in typed.plain(report.diagnosis.headline)
    assert "initialization" not in typed.plain(report.diagnosis.headline)


def test_an_early_operation_of_another_stream_does_not_make_it_idle_time(tmp_path: Path) -> None:
    """One small kernel runs at once beside the work that is not in the capture."""
    trace = traced().kernel(MS, MS + 2 * US, name="arange", stream=9, launch=(MS - 10 * US, MS - 5 * US))
    end = a_pass(trace, 2 * MS, 150 * MS)
    (device,) = analyzed(trace, tmp_path).devices
    assert (device.window.start_ns, device.window.end_ns, device.idle_ns) == (150 * MS, end, 0)


@pytest.mark.parametrize("call", ["cuInit", "cuCtxCreate_v2", "cuModuleLoadData", "cudaMalloc_v3020"])
def test_a_start_has_a_call_that_shows_it(call: str, tmp_path: Path) -> None:
    trace = traced().api(call, MS, 100 * MS)
    a_pass(trace, 101 * MS, 150 * MS)
    names = [phase.name for phase in analyzed(trace, tmp_path).phases]
    assert names[0] == "start-up"


def test_a_host_that_launches_late_is_idle_time(tmp_path: Path) -> None:
    """Nothing waits in a queue: the launches come late."""
    trace = traced().nvtx("step 3", 0, 190 * MS)
    end = a_pass(trace, MS, MS + 10 * US, slow=3 * MS)
    (device,) = analyzed(trace, tmp_path, profiled=True).devices
    assert (device.window.start_ns, device.window.end_ns) == (MS + 10 * US, end)
    assert device.idle_ns == 25 * 3 * MS


@pytest.mark.parametrize("name", ["ProfilerStep#6", "execute_context_1(888_1)_generation_0(0)", "step[EXTEND bs=15]"])
def test_one_step_is_judged_from_its_first_operation_to_its_last(name: str, tmp_path: Path) -> None:
    """Its start and its end have other work than the layers, and are parts of it."""
    trace = traced().nvtx(name, MS // 2, 200 * MS)
    end = a_pass(trace, MS, MS + 10 * US, slow=2 * MS)
    report = analyzed(trace, tmp_path, profiled=True)
    (phase,) = report.phases
    assert (phase.start_ns, phase.end_ns, phase.judged) == (MS + 10 * US, end, True)
    assert phase.steps is not None
    assert (phase.steps.kind, phase.steps.parts) == ("pass", 12)
    assert report.diagnosis.basis == "window"
    assert "of the one pass in the trace" in typed.plain(report.diagnosis.headline)


def test_the_end_of_the_pass_before_is_the_head_of_the_slice(tmp_path: Path) -> None:
    """
    calls                        [launches of a step]
    device   [layers, head ]...............[step            ]
    """
    trace = traced()
    before = a_pass(trace, 0, 1_000, 6, launched=False)
    begin = before + 4 * MS
    trace.nvtx("ProfilerStep#6", begin - MS, begin + 30 * MS)
    end = a_pass(trace, begin - 20 * US, begin)
    report = analyzed(trace, tmp_path)
    assert [(phase.name, phase.end_ns) for phase in report.phases] == [("head", begin), ("steady", end)]
    (device,) = report.devices
    assert device.iterations is not None
    assert device.iterations.slow == [], "the border between two passes is no slow iteration"


def test_a_few_steps_are_those_steps(tmp_path: Path) -> None:
    trace, at = traced(), MS
    for number in range(3):
        trace.nvtx(f"ProfilerStep#{number + 6}", at - 100 * US, at + 14 * MS)
        at = a_pass(trace, at - 50 * US, at) + 3 * MS
    report = analyzed(trace, tmp_path, profiled=True)
    (steps,) = (phase.steps for phase in report.phases if phase.judged)
    assert steps is not None
    assert (steps.count, steps.kind) == (3, "step")
    assert report.diagnosis.basis == "phase"


def test_one_range_that_is_chosen_is_one_step(tmp_path: Path) -> None:
    trace = traced().api("cudaMalloc_v3020", 0, 90 * MS).nvtx("work", 100 * MS, 120 * MS)
    begin = 101 * MS
    end = a_pass(trace, begin - 10 * US, begin)
    trace.kernel(end + MS, end + 2 * MS, name="after", launch=(125 * MS, 126 * MS))
    report = analyzed(trace, tmp_path, step="wor*")
    judged = [(phase.start_ns, phase.end_ns) for phase in report.phases if phase.judged]
    assert judged == [(begin, end)]
    assert [phase.name for phase in report.phases] == ["start-up", "steady", "teardown"]


def test_a_run_that_shows_nothing_of_its_start_still_has_one(tmp_path: Path) -> None:
    """An export of nsys without evidence that it begins later than the program."""
    trace = traced().nvtx("step 3", 0, 190 * MS)
    a_pass(trace, 30 * MS, 30 * MS + 10 * US, slow=3 * MS)
    trace.api("cudaDeviceSynchronize", 0, 20 * MS)
    assert analyzed(trace, tmp_path).phases[0].name in ("start-up", "steady")


def with_layers(path: Path, name: str, count: int) -> Path:
    """Names of Python functions, as the PyTorch profiler writes them."""
    with closing(sqlite3.connect(path)) as connection:
        rows = [(900_000 + at, f"nn.Module: {name}_{at}") for at in range(count)]
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", rows)
        connection.execute("INSERT INTO META_DATA_EXPORT VALUES (?, '1')", (MARK,))
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("name", "count", "said"),
    [
        ("Qwen2DecoderLayer", 12, "one pass of 12 layers (no steady state)"),
        ("TransformerBlock", 24, "one pass of 24 layers (no steady state)"),
        ("Qwen2DecoderLayer", 40, "one pass: 12 repeats of 5 kernels, probably its layers (no steady state)"),
        ("Linear", 12, "one pass: 12 repeats of 5 kernels, probably its layers (no steady state)"),
    ],
)
def test_repeats_are_layers_where_modules_number_as_many(name: str, count: int, said: str, tmp_path: Path) -> None:
    """Or two kinds of layers in each repeat."""
    trace = traced().nvtx("ProfilerStep#6", MS // 2, 20 * MS)
    a_pass(trace, MS, 2 * MS)
    report = analyze(with_layers(trace.write(tmp_path / "trace.sqlite"), name, count), Settings(timeline=False))
    (steps,) = (phase.steps.words for phase in report.phases if phase.judged and phase.steps)
    assert steps == said


def test_layers_are_counted_by_class() -> None:
    names = ["nn.Module: DecoderLayer_0", "nn.Module: DecoderLayer_1", "nn.Module: Block_0", "nn.Module: Linear_7", "f"]
    assert layers_named(names) == 2
    assert layers_named(["DecoderLayer_5"]) == 0
