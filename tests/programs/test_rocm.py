"""Programs of ROCm: they are told by calls and kernels, and no advice names a tool of NVIDIA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import analyze
from nsysdiag.programs.names import frameworks_of, ids_of
from tests.trace.kineto_traces import write

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

STEPS = 30
NVIDIA = ("ncu ", "Nsight", "nvidia-smi", "nsys profile", "DCGM")


def test_it_is_told_by_calls_and_kernels() -> None:
    assert ids_of(frameworks_of({"call": ("hipLaunchKernel",)})) == ["rocm"]
    assert ids_of(frameworks_of({"kernel": ("Cijk_Ailk_Bljk_BBS_BH",)})) == ["rocm"]
    assert ids_of(frameworks_of({"call": ("cudaLaunchKernel", "chip")})) == []


def made(folder: Path, api: str) -> Report:
    events: list[dict[str, Any]] = []
    for step in range(STEPS):
        at, args = step * 1_000, {"correlation": step + 1}
        place = {"device": 0, "context": 1, "stream": 7, "grid": [99, 1, 1], "block": [128, 1, 1]}
        events += [
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": f"{api}LaunchKernel",
                "pid": 7,
                "tid": 7,
                "ts": at,
                "dur": 5,
                "args": args,
            },
            {
                "ph": "X",
                "cat": "kernel",
                "name": "stencil",
                "pid": 0,
                "tid": 7,
                "ts": at + 6,
                "dur": 950,
                "args": {**args, **place},
            },
        ]
    return analyze(write({"schemaVersion": 1, "traceEvents": events}, folder / f"{api}.pt.trace.json"))


def advised(report: Report) -> str:
    tools = [each.tool for each in report.not_recorded]
    options = [each.recapture or "" for each in report.trace.capabilities]
    return "\n".join(
        [
            *(line for each in report.findings for line in (*each.advice, *each.chain)),
            *(*tools, *options, report.recapture or ""),
        ]
    )


@pytest.mark.slow
def test_no_advice_names_a_tool_of_nvidia(tmp_path: Path) -> None:
    of_rocm, of_cuda = advised(made(tmp_path, "hip")), advised(made(tmp_path, "cuda"))
    assert not [name for name in NVIDIA if name in of_rocm]
    assert "rocprof-compute profile --name kernels --kernel stencil -- PROGRAM" in of_rocm
    assert "ncu --set full --kernel-name stencil" in of_cuda
    assert "rocprof" not in of_cuda
