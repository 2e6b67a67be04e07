"""A source outside of the program that is ahead of it may limit it once it is faster; a file does not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from nsysdiag.replay.facts import Transform
from tests.replay.pairs import paced, sources
from tests.replay.pairs.pair import Pair, pair
from tests.replay.pairs.prediction import predicted


@pytest.mark.slow
@pytest.mark.parametrize("each", sources.PAIRS, ids=lambda each: each.name)
def test_a_source_that_is_ahead_may_limit(each: Pair, tmp_path: Path) -> None:
    outcome = predicted(each, tmp_path)
    assert outcome.low <= outcome.true <= outcome.high


@pytest.mark.slow
def test_a_file_that_is_there_limits_nothing(tmp_path: Path) -> None:
    read = partial(paced.pausing, by="read", pause=60_000, host=3_000_000)
    outcome = predicted(pair("file", read, {"factor": 0.5}, Transform("host", "prepare", 0.5), (0.2, 0.6)), tmp_path)
    assert outcome.low > 0.2
