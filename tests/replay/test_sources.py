"""A source outside of the program that is ahead of it may limit it once it is faster; a file does not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.rows import CallTable
from nsysdiag.replay.beside import Requests
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.sources import _like_code
from nsysdiag.replay.work import Stretch
from tests.replay.pairs import paced, sources
from tests.replay.pairs.pair import Pair, pair
from tests.replay.pairs.prediction import predicted


@pytest.mark.slow
@pytest.mark.parametrize("each", sources.PAIRS, ids=lambda each: each.name)
def test_a_source_that_is_ahead_may_limit(each: Pair, tmp_path: Path) -> None:
    outcome = predicted(each, tmp_path)
    assert outcome.low <= outcome.true <= outcome.high


class TestRequests:
    """Waits of launching threads for messages, and who may have sent these."""

    LOOP = Stretch(np.array([300_000, 600_000]), stepwise=True, loop=(200_000, 900_000))
    WINDOW = Stretch(np.array([200_000, 900_000]), stepwise=False)

    @staticmethod
    def rows(calls: Sequence[tuple[int, int, int, str]], launching: int = 1, stretch: Stretch = LOOP) -> int:
        names = sorted({name for *_, name in calls})
        thread, start, end = (np.array([each[at] for each in calls]) for at in range(3))
        code = np.array([names.index(name) for *_, name in calls])
        table = CallTable(thread, start, end, code, names, code)
        launches = SimpleNamespace(start=np.array([5_000, 40_000, 190_000]), end=np.array([8_000, 45_000, 195_000]))
        activity = SimpleNamespace(
            operations=SimpleNamespace(start=np.array([10_000, 50_000, 200_000])),
            launch=np.arange(3),
            api_calls=SimpleNamespace(rows=launches),
        )
        return len(Requests.of(table, np.array([launching]), activity, stretch))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("start", "end", "found"),
        [
            (10_000, 60_000, 0),  # other work is done between it and the loop
            (100_000, 150_000, 1),  # the first step waits
            (220_000, 250_000, 1),  # in a step that is not replayed
            (220_000, 230_000, 0),  # the return of the call
            (890_000, 950_000, 0),  # behind the loop
        ],
    )
    def test_count_in_any_step(self, start: int, end: int, found: int) -> None:
        assert self.rows([(1, start, end, "recv")]) == found

    @pytest.mark.parametrize(
        ("start", "end", "found"),
        [
            (10_000, 60_000, 0),  # a call is made behind it, before the first work
            (100_000, 150_000, 1),  # the first work waits for it
            (220_000, 250_000, 1),
            (890_000, 950_000, 0),
        ],
    )
    def test_count_before_the_first_work_of_a_window(self, start: int, end: int, found: int) -> None:
        assert self.rows([(1, start, end, "recv")], stretch=self.WINDOW) == found

    def test_are_none_in_a_window_without_work(self) -> None:
        after = Stretch(np.array([300_000, 900_000]), stepwise=False)
        assert self.rows([(1, 400_000, 450_000, "recv")], stretch=after) == 0

    def test_of_threads_that_launch(self) -> None:
        assert self.rows([(1, 220_000, 260_000, "recv")], launching=2) == 0

    @pytest.mark.parametrize(("at", "found"), [(210_000, 1), (240_000, 0), (270_000, 1)])
    def test_are_for_no_thread_that_sends(self, at: int, found: int) -> None:
        assert self.rows([(1, 220_000, 260_000, "poll"), (2, at, at + 5_000, "sendmsg")]) == found

    def test_are_for_no_file(self) -> None:
        assert self.rows([(1, 220_000, 260_000, "read")]) == 0


@pytest.mark.slow
def test_a_file_that_is_there_limits_nothing(tmp_path: Path) -> None:
    read = partial(paced.pausing, by="read", pause=60_000, host=3_000_000)
    outcome = predicted(pair("file", read, {"factor": 0.5}, Transform("host", "prepare", 0.5), (0.2, 0.6)), tmp_path)
    assert outcome.low > 0.2


class TestTimesWithoutEvidence:
    """Times of 1 ms between calls, of which nothing is known, in steps of about 3 ms."""

    BEFORE = 2_000_000 + 100_000 * np.array([0, 3, -2, 4, -1, -3, 2, 1, -4, 0, 3, -2])
    NOISE = 20_000 * np.array([1, -1, 0, 1, 1, -1, 0, -1, 1, 0, -1, 1])

    def alike(self, length: IntArray, *, sampled: bool = False) -> bool:
        """Whether they are like code, the last of them without what is before it."""
        end = np.cumsum(self.BEFORE + length)
        model = SimpleNamespace(
            pieces=SimpleNamespace(start=end - length, end=end),
            stretch=SimpleNamespace(count=len(length)),
            host=SimpleNamespace(host=SimpleNamespace(axis=SimpleNamespace(stride=10**12))),
            sampled=np.full(len(length), sampled),
        )
        return _like_code(model, np.arange(len(length)))  # type: ignore[arg-type]

    def test_as_long_each_time_are_code(self) -> None:
        assert self.alike(1_000_000 + self.NOISE)

    def test_that_make_up_for_the_rest_of_the_step_are_waits(self) -> None:
        assert not self.alike(3_000_000 - self.BEFORE + self.NOISE)

    def test_that_mostly_are_short_may_be_waits(self) -> None:
        assert not self.alike(np.where(np.arange(12) % 4 == 0, 2_000_000, 60_000))

    def test_cut_by_samples_may_be_waits(self) -> None:
        assert not self.alike(1_000_000 + self.NOISE, sampled=True)
