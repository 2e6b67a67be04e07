"""What is promised of the same programs if no steps are known of them: one window of all is replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.pipeline.changes import whatif
from nsysdiag.replay import work
from nsysdiag.trace.trace import open_trace
from tests.replay.pairs.prediction import SETTINGS
from tests.shared import made_once
from tests.unlike import CLASSES
from tests.unlike.made import Loops, lengths, window_length
from tests.unlike.test_less_evidence import CAPTURES
from tests.unlike.test_unlike import OF_ONE_THREAD, SEVERAL, Promise, Seen, _saved, seen

MOST = 60_000
"""Operations that a window may hold: all of these programs."""

WIDEST = 0.05
"""The median distance of the bounds, of the window."""


def _window(parts: Intervals, steps: IntArray | None, starts: IntArray, *_: int) -> work.Stretch | str:
    return work.stretch_of(parts, None, starts, MOST)


def _lengths(loops: Loops, first: int = 0) -> IntArray:
    """A window also begins with the first operation: what fills the queue at its begin is a part of it."""
    return np.append(lengths(loops, first), window_length(loops, first))


@made_once
def windowed(name: str, seed: int, capture: str = "") -> Seen:
    """What is said of a program, with predictions for a window."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsysdiag.pipeline.replaying.stretch_of", _window)
        patch.setattr("tests.unlike.test_unlike.lengths", _lengths)
        return seen.__wrapped__(name, seed, CLASSES[name].capture.but(**CAPTURES[capture]) if capture else None)


@pytest.mark.sampled(quick=24, normal=6)
@pytest.mark.parametrize("name", CLASSES)
def test_what_is_promised_holds(name: str) -> None:
    found = windowed(name, 16101)
    assert [each for each in found.promises if not each.holds] == []
    assert [each for each in found.broken if name not in SEVERAL or not each.startswith(OF_ONE_THREAD)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed", "capture"),
    [
        ("a_control_loop_by_a_clock", 16000, ""),  # each wait of a window was alone: no clock was seen
        ("a_control_loop_by_a_clock", 16100, ""),  # work before and behind its kernels in turn was a wait for a time
        ("a_control_loop_by_a_clock", 16001, "CUDA"),  # host time without evidence was never a wait
        ("a_server_of_parameters", 16101, "CUDA"),
        ("streams_of_two_priorities", 16001, ""),  # ranges named steps, and a window was as long as another thread
        ("a_convoy_of_launching_threads", 16101, ""),  # three threads with the same kernels were one
        ("requests_by_chance", 16000, ""),  # a source outside of the program was no limit
        ("requests_by_chance", 17001, ""),  # nor was one that was waited for before the first work only
        ("asynchronous_checkpoints", 16100, ""),  # of equally long stops one or two were pauses, and the others steps
        ("a_quota_of_cpu_time", 17, ""),  # stops by a limit of CPU time were work that ends by a clock
        ("a_quota_of_cpu_time", 23001, ""),  # the same, as no two periods in a row have a stop
        ("metrics_that_block", 27000, ""),  # two kinds of host code in turn were mixed once one was not there: a clock
        ("a_team_of_threads", 23001, ""),  # a finding on code was about the launching thread, not about its team
        ("a_compile_in_the_middle", 16000, ""),  # the first step of a phase had to fill the queue
    ],
)
def test_what_was_once_wrong(name: str, seed: int, capture: str) -> None:
    assert [each for each in windowed(name, seed, capture).promises if not each.holds] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [41_000, 41_002, 41_005])
def test_a_queue_that_is_full_when_the_window_begins(seed: int, tmp_path: Path) -> None:
    """What was queued before was no part of the window, so that the queue was taken for empty; and with kernels that
    are far faster the window held little but what was queued, as long as the device takes for it."""
    kind = CLASSES["a_queue_that_is_full"]
    made = kind.made(seed)
    simulation, _ = kind.run(made)
    trace = simulation.write(tmp_path / "trace.sqlite", kind.capture)
    with open_trace(trace) as opened:
        kernels = opened.read("CUPTI_ACTIVITY_KIND_KERNEL", "start", "end")
    begin, end = int(kernels["start"].min()), int(kernels["end"].max())
    for number, fix in enumerate(kind.fixes(made)):
        if fix.transforms:
            within = replace(SETTINGS, start_ns=begin + (end - begin) // 2, end_ns=begin + 9 * (end - begin) // 10)
            told = whatif(trace, fix.transforms, within)
            low, high = (1 - ns / told.now_ns for ns in (told.high_ns, told.low_ns))
            assert Promise(fix.name, low, high, *_saved("a_queue_that_is_full", seed, number, lengths)).holds


@pytest.mark.thorough
def test_much_is_still_said() -> None:
    every = [windowed(name, 16101) for name in CLASSES]
    widths = sorted(each.high - each.low for one in every for each in one.promises)
    assert widths[len(widths) // 2] <= WIDEST
