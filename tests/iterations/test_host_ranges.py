"""What repeats on the host of a trace without GPU activity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysdiag import Settings, analyze
from nsysdiag.diagnosis.sentences import unrecorded
from nsysdiag.events.nvtx import NvtxRanges, PythonMarks, RangeRows
from nsysdiag.host.alone import Alone
from nsysdiag.iterations.named import HostLoop, HostRange, host_loop
from nsysdiag.typed import plain
from tests.builder import TraceBuilder

MS = 1_000_000
FRAMES = 20


def ranges(*of: tuple[str, int, int, int]) -> NvtxRanges:
    """Ranges of (name, start, end, thread)."""
    names = sorted({name for name, *_rest in of})

    def column(values: list[int]) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    none = np.zeros(len(of), dtype=np.bool_)
    rows = RangeRows(
        start=column([start for _name, start, _end, _thread in of]),
        end=column([end for _name, _start, end, _thread in of]),
        thread=column([thread for *_rest, thread in of]),
        name=column([names.index(name) for name, *_rest in of]),
        communication=none,
        mpi=none,
        start_end=none,
        communicator=np.zeros(len(of), dtype=np.int64),
        message=np.zeros(len(of), dtype=np.int64),
    )
    empty = column([])
    return NvtxRanges(rows, names, PythonMarks(empty, empty, empty))


def frames(count: int = FRAMES) -> list[tuple[str, int, int, int]]:
    """Of each 40 ms: 24 in the backbone with a range inside, 12 in numbered heads."""
    found = []
    for at in range(count):
        start = at * 40 * MS
        found += [
            ("3D_backbone", start, start + 24 * MS, 7),
            ("inside", start + MS, start + 23 * MS, 7),
            (f"head {at}", start + 24 * MS, start + 36 * MS, 7),
        ]
    return found


def test_outermost_ranges_and_their_period() -> None:
    """Of 796 ms, which end with the last head: 480 and 240 ms."""
    assert host_loop(ranges(*frames())) == HostLoop(
        40 * MS, [HostRange("3D_backbone", FRAMES, 480 / 796), HostRange("head #", FRAMES, 240 / 796)], thread=7
    )


def test_the_order_of_rows_says_nothing() -> None:
    assert host_loop(ranges(*reversed(frames()))) == host_loop(ranges(*frames()))


@pytest.mark.parametrize(
    "found",
    [
        [],
        frames(4),
        [
            ("load", 0, 900 * MS, 7),
            *((name, start + 900 * MS, end + 900 * MS, 7) for name, start, end, _ in frames(10)),
        ],
        [("aten::mm", at * MS, (at + 1) * MS, 7) for at in range(50)],
    ],
    ids=["nothing", "too few", "one long range", "operators"],
)
def test_no_loop(found: list[tuple[str, int, int, int]]) -> None:
    assert host_loop(ranges(*found)) is None


def test_the_thread_with_most_time_counts() -> None:
    other = [("poll", at * 40 * MS, at * 40 * MS + 30 * MS, 9) for at in range(FRAMES)]
    found = host_loop(ranges(*other, *frames()))
    assert found is not None
    assert (found.ranges[0].name, found.thread) == ("3D_backbone", 7)


def test_in_a_headline() -> None:
    loop = HostLoop(39_400_000, [HostRange("3D_backbone", 188, 0.403), HostRange("find_centers", 188, 0.289)])
    assert plain(unrecorded(loop)) == (
        "No GPU activity was recorded, so what the GPU did is unknown. On the host a loop repeats 188 times, every "
        "39.4 ms: 3D_backbone takes 40.3% of that time, find_centers 28.9%. Host ranges may include waits for the GPU."
    )
    on = "On the host main thread 4711 of 'python' repeats a loop 188 times, every 39.4 ms: 3D_backbone takes 40.3%"
    assert on in plain(unrecorded(loop, Alone(looping="main thread 4711 of 'python'")))
    assert unrecorded(None) == "No GPU activity was recorded, so what the GPU did is unknown."


def test_gpus_that_rest_in_the_chosen_time_did_not_go_unrecorded(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 2_000, launch=(500, 600)).kernel(9_000, 10_000, launch=(8_500, 8_600))
    path = trace.write(tmp_path / "t.sqlite")
    found = analyze(path, Settings(start_ns=4_000, end_ns=5_000)).diagnosis
    assert found is not None
    assert found.headline == (
        "No GPU worked in the chosen time: all GPU activity that was recorded is before or after it."
    )
