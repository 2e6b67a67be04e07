"""What is promised of the same programs if no steps are known of them: one window of all is replayed."""

from __future__ import annotations

from functools import cache

import pytest

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.replay import work
from tests.unlike.test_unlike import Seen, seen

MOST = 60_000
"""Operations that a window may hold: all of these programs."""


def _window(parts: Intervals, steps: IntArray | None, starts: IntArray, *_: int) -> work.Stretch | str:
    return work.stretch_of(parts, None, starts, MOST)


@cache
def windowed(name: str, seed: int) -> Seen:
    """What is said of a program, with predictions for a window."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsysdiag.pipeline.replaying.stretch_of", _window)
        return seen.__wrapped__(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("a_control_loop_by_a_clock", 16000),  # each wait of a window was alone: no clock was seen
    ],
)
def test_what_was_once_wrong(name: str, seed: int) -> None:
    assert [each for each in windowed(name, seed).promises if not each.holds] == []
