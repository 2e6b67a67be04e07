"""How a trace of the PyTorch profiler was recorded: ranks, options, GPUs, the profiler's own time, and roundings."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag.trace.kineto.tables import convert
from tests.trace.kineto_traces import write

if TYPE_CHECKING:
    from pathlib import Path

MI300 = {"id": 0, "name": "", "numSms": 304, "warpSize": 64}


def event(category: str, name: str, start: float, length: float, tid: int = 7, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 5, "tid": tid, "ts": start, "dur": length, "args": args}


def kernel(start: float, length: float, device: int = 0, name: str = "k", stream: int = 3) -> dict[str, Any]:
    return event("kernel", name, start, length, device=device, stream=stream)


def tables(folder: Path, query: str, *events: dict[str, Any], **more: Any) -> list[Any]:
    """What the tables of a trace with these events hold."""
    source = write({"schemaVersion": 1, "traceEvents": list(events), **more}, folder / "a.json")
    convert(source, folder / "a.sqlite")
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"distributedInfo": {"rank": 3, "world_size": 8}}, "rank 3 of 8"),
        ({"with_stack": 1, "record_shapes": 1}, "record_shapes, with_stack: this makes the host slower"),
        ({"distributedInfo": {"rank": 0, "world_size": 1}, "with_stack": 0}, ""),
        ({"distributedInfo": ["odd"], "with_stack": "odd"}, ""),
    ],
)
def test_what_a_reader_must_know(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    source = write({"schemaVersion": 1, "traceEvents": [kernel(5, 1)], **more}, tmp_path / "a.json")
    found = convert(source, tmp_path / "a.sqlite")
    assert len(found) == bool(said)
    assert said in "".join(found)


@pytest.mark.parametrize(
    ("name", "properties", "shown"),
    [
        ("Cijk_BBS_MT64x64x32_ISA942_SN", MI300, "AMD GPU with 304 CUs (gfx942, inferred)"),
        ("gemm", MI300, "AMD GPU with 304 CUs (inferred)"),
        ("gemm", {**MI300, "name": "AMD Instinct MI300X"}, "AMD Instinct MI300X"),
        ("gemm", {**MI300, "warpSize": 32}, ""),
    ],
)
def test_the_only_gpu_has_the_only_properties(
    name: str, properties: dict[str, Any], shown: str, tmp_path: Path
) -> None:
    query = "SELECT id, name, smCount FROM TARGET_INFO_GPU"
    assert tables(tmp_path, query, kernel(5, 1, 9, name), deviceProperties=[properties]) == [(9, shown, 304)]


def test_of_several_gpus_none_is_guessed(tmp_path: Path) -> None:
    query = "SELECT name FROM sqlite_master WHERE name = 'TARGET_INFO_GPU'"
    two = [MI300, {**MI300, "id": 1}]
    assert tables(tmp_path, query, kernel(5, 1, 9), deviceProperties=two) == []
    (tmp_path / "a.sqlite").unlink()
    assert tables(tmp_path, query, kernel(5, 1, 8), kernel(5, 1, 9), deviceProperties=[MI300]) == []


def test_time_of_the_profiler_is_on_the_thread_whose_call_it_is_in(tmp_path: Path) -> None:
    found = tables(
        tmp_path,
        "SELECT globalTid & 0xffffff, overheadType, end - start FROM CUPTI_ACTIVITY_KIND_OVERHEAD ORDER BY start",
        event("cuda_runtime", "cudaLaunchKernel", 10, 20, 7, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", 40, 20, 8, correlation=2),
        {**event("overhead", "Lazy Function Loading", 12, 5, 0), "pid": -1},
        {**event("overhead", "Activity Buffer Request", 45, 5, 0), "pid": -1},
        {**event("overhead", "Instrumentation", 80, 5, 0), "pid": -1},
    )
    assert found == [(7, 7, 5_000), (8, 3, 5_000)]


def test_gaps_of_roundings_are_none(tmp_path: Path) -> None:
    work = (kernel(5, 1), kernel(6.001, 1), kernel(7.003, 1), kernel(8.006, 1), kernel(8.5, 1, stream=4))
    found = tables(tmp_path, "SELECT start - 1, end - 1 FROM CUPTI_ACTIVITY_KIND_KERNEL", *work)
    assert found == [(0, 1_000), (1_000, 2_001), (2_001, 3_003), (3_006, 4_006), (3_500, 4_500)]


def test_times_count_from_the_first_event_of_any_kind(tmp_path: Path) -> None:
    """As in a viewer; what only names a process is not an event."""
    mark, name = ({**event("", "mark", at, 0, 4), "ph": phase} for at, phase in ((3, "i"), (1, "M")))
    found = tables(tmp_path, "SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL", mark, name, kernel(5, 1))
    assert found == [(2_001,)]


def test_times_as_text_are_times(tmp_path: Path) -> None:
    work = [{**each, "ts": str(each["ts"]), "dur": str(each["dur"])} for each in (kernel(5, 1), kernel(9, 2))]
    work += [{**kernel(3, 1), "ts": "soon"}, {**kernel(3, 1), "dur": "nan"}]
    found = tables(tmp_path, "SELECT end - start FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start", *work)
    assert found == [(1_000,), (2_000,)]
