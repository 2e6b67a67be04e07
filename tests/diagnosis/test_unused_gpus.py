"""GPUs without work: named, and where several processes share fewer, what to check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.diagnosis.judge import one_gpu, unused_gpus
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

SHARED = "4 processes share one GPU of 4, and 3 are unused: check which GPU each process selects."


@pytest.mark.parametrize(
    ("present", "used", "processes", "mpi", "said"),
    [
        (4, 1, 1, False, "1 of 4 GPUs is in use."),
        (4, 3, 3, False, "3 of 4 GPUs are in use."),
        (4, 1, 1, True, ""),  # the other ranks may be in other traces
        (4, 4, 8, True, ""),
        (4, 4, 8, False, "8 processes share 4 GPUs."),
        (1, 1, 2, False, "2 processes share the GPU."),
        (1, 1, 1, False, ""),
        (None, 1, 4, False, ""),
        (4, 1, None, False, ""),
        (4, 1, 4, True, SHARED),
        (4, 1, 4, False, SHARED),
        (4, 3, 4, False, "4 processes share 3 GPUs of 4, and 1 is unused: check which GPU each process selects."),
    ],
)
def test_the_sentence(present: int | None, used: int, processes: int | None, mpi: bool, said: str) -> None:
    assert unused_gpus(present, used, processes, mpi=mpi) == said


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ((100_000, 100_000, 100_000), "3 processes share one GPU of 4, and 3 are unused"),
        ((100_000, 1_000, 1_000), "1 of 4 GPUs is in use."),  # those that only touch it are none
    ],
)
def test_processes_that_work_on_the_same_gpu(tmp_path: Path, lengths: tuple[int, ...], said: str) -> None:
    trace = TraceBuilder(schema="3.24.8")
    for number in range(4):
        trace.gpu(number)
    for process, length in enumerate(lengths):
        pid = 100 + process
        trace.cuda_device(0, 0, pid)
        for step in range(20):
            at = 1_000_000 + 1_000_000 * step + 150_000 * process
            trace.kernel(at, at + length, name="advance", launch=(at - 900, at - 800), thread=(pid, pid))
    found = analyze(trace.write(tmp_path / "t.sqlite")).diagnosis
    assert found is not None
    assert (found.gpus_present, found.gpus_used) == (4, 1)
    assert said in found.headline


def test_of_a_chosen_gpu_nothing_is_said_of_the_others(tmp_path: Path) -> None:
    trace = TraceBuilder(schema="3.24.8")
    for number in range(2):
        trace.gpu(number)
        trace.cuda_device(number, 0, 100 + number)
        for at in range(1_000_000, 21_000_000, 1_000_000):
            trace.kernel(at, at + 100_000, name="advance", launch=(at - 900, at - 800), thread=(100 + number,) * 2)
    found = analyze(trace.write(tmp_path / "t.sqlite"), Settings(device="gpu0")).diagnosis
    assert found is not None
    assert "GPUs" not in found.headline


def test_a_list_without_a_gpu_that_works_is_none_of_those_present(tmp_path: Path) -> None:
    """Two GPUs of one were in use."""
    trace = TraceBuilder(schema="3.24.8").gpu(0)
    for number in range(2):
        for at in range(1_000_000, 21_000_000, 1_000_000):
            trace.kernel(at, at + 100_000, name="advance", launch=(at - 900, at - 800), device=number)
    found = analyze(trace.write(tmp_path / "t.sqlite")).diagnosis
    assert found is not None
    assert (found.gpus_present, found.gpus_used) == (None, 2)


def test_devices_that_look_like_one() -> None:
    assert one_gpu(["gpu0"]) == ""
    assert one_gpu(["a", "b", "c"]).startswith("a, b and c take turns,")
    assert one_gpu(list("abcde")).startswith("5 of these GPUs take turns,")
