"""Traces of the PyTorch profiler on AMD GPUs: calls of HIP mean what those of CUDA mean, and keep their names."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import analyze, open_trace
from nsysdiag.events.calls import clean_api_name, cuda_name
from nsysdiag.share.names import is_public_function
from nsysdiag.trace.kineto.tables import convert
from tests.simulator import CUDA_ONLY
from tests.simulator.scenarios import SCENARIOS
from tests.trace.kineto_traces import document, write

if TYPE_CHECKING:
    from pathlib import Path

HIP = {
    "cudaMemcpy": "hipMemcpyWithStream",
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cudaHostAlloc": "hipHostMalloc",
    "cudaFreeHost": "hipHostFree",
}


@pytest.mark.parametrize(
    ("hip", "cuda"),
    [
        ("hipLaunchKernel", "cudaLaunchKernel"),
        ("hipExtModuleLaunchKernel", "cuLaunchKernel"),
        ("hipMemcpyWithStream", "cudaMemcpy"),
        ("hipMemcpyAsync", "cudaMemcpyAsync"),
        ("hipMemcpyDtoH", "cuMemcpyDtoH"),
        ("hipMemsetD32Async", "cuMemsetD32Async"),
        ("hipCtxSynchronize", "cuCtxSynchronize"),
        ("hipDeviceSynchronize", "cudaDeviceSynchronize"),
        ("hipModuleLoadData", "cuModuleLoadData"),
        ("hipMemAddressReserve", "cuMemAddressReserve"),
        ("hipMemPrefetchAsync", "cudaMemPrefetchAsync"),
        ("hipHostMalloc", "cudaHostAlloc"),
        ("hipHostRegister", "cudaHostRegister"),
        ("hipInit", "cuInit"),
        ("hiprtcCompileProgram", "nvrtcCompileProgram"),
        ("hipblasCreate", "hipblasCreate"),
        ("cudaMalloc", "cudaMalloc"),
        ("pthread_cond_wait", "pthread_cond_wait"),
    ],
)
def test_counterparts(hip: str, cuda: str) -> None:
    assert cuda_name(hip) == cuda


def test_versions_of_names() -> None:
    assert clean_api_name("hipGetDevicePropertiesR0600") == "hipGetDeviceProperties"
    assert clean_api_name("hipMemcpyAsync_spt") == "hipMemcpyAsync"
    assert is_public_function("hipMemcpyWithStream")
    assert not is_public_function("hipSolveHeat")


def as_hip(content: dict[str, Any]) -> dict[str, Any]:
    """The same program, whose calls are those of HIP."""
    calls = {"cuda_runtime", "cuda_driver"}
    return {
        **content,
        "traceEvents": [
            {**each, "cat": "cuda_runtime", "name": HIP.get(each["name"]) or re.sub("^cu(da)?", "hip", each["name"])}
            if each["cat"] in calls
            else each
            for each in content["traceEvents"]
        ],
    }


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name",
    [
        "drained_by_sync",
        "readback",
        "pageable_copy",
        "memory_allocation",
        "graph_build",
        "library_load",
    ],
)
def test_causes_are_those_of_cuda(name: str, tmp_path: Path) -> None:
    content = document(SCENARIOS[name].run().write(tmp_path / "a.sqlite", CUDA_ONLY))
    cuda, hip = (analyze(write(each, tmp_path / "a.json")) for each in (content, as_hip(content)))
    (before,), (after,) = cuda.devices, hip.devices
    assert after.ledger == before.ledger
    assert [(each.variant, each.share) for each in hip.findings] == [
        (each.variant, each.share) for each in cuda.findings
    ]
    called = {slice.evidence for gap in after.gaps for slice in gap.slices}
    assert any("hip" in each for each in called)
    assert not any("cuda" in each for each in called)


def tables(events: list[dict[str, Any]], folder: Path, query: str) -> list[Any]:
    """What the tables of a trace with these events hold."""
    source = write({"schemaVersion": 1, "traceEvents": events}, folder / "a.json")
    convert(source, folder / "a.sqlite")
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection:
        return connection.execute(query).fetchall()


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 5, "tid": 5, "ts": 1, "dur": 2, "args": args}


def work(category: str, name: str, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 3, "ts": 9, "dur": 1, "args": args}


@pytest.mark.parametrize(("launch", "blocks"), [("hipExtModuleLaunchKernel", 5), ("hipModuleLaunchKernel", 1_025)])
def test_a_grid_of_work_items_becomes_one_of_blocks(launch: str, blocks: int, tmp_path: Path) -> None:
    shape = {"grid": [1_025, 2, 1], "block": [256, 1, 1]}
    events = [call(launch, correlation=7), work("kernel", "k", correlation=7, **shape)]
    found = tables(events, tmp_path, "SELECT gridX, gridY, gridZ, blockX FROM CUPTI_ACTIVITY_KIND_KERNEL")
    assert found == [(blocks, 2, 1, 256)]


@pytest.mark.parametrize(
    ("kind", "sides"), [("1", (1, -1, 2)), ("2", (2, 2, -1)), ("3", (8, 2, 2)), ("4", (8, 2, 2)), (None, (8, 2, 2))]
)
def test_a_copy_goes_where_its_call_says(kind: str | None, sides: tuple[int, ...], tmp_path: Path) -> None:
    copy = work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", correlation=7, bytes=60, kind="DtoD")
    events = [call("hipMemcpyAsync", correlation=7, kind=kind), copy]
    found = tables(events, tmp_path, "SELECT copyKind, srcKind, dstKind FROM CUPTI_ACTIVITY_KIND_MEMCPY")
    assert found == [sides]


def test_info_says_who_recorded_it(tmp_path: Path) -> None:
    content = {"roctracer_version": 4.1, "hip_runtime_version": 70253211, "cupti_version": "x", "traceEvents": []}
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 5, "args": {"device": 0}}
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps({**content, "traceEvents": [event]}))
    with open_trace(path) as trace:
        assert trace.recorder == "PyTorch profiler (roctracer 4.1, HIP 7.2)"
