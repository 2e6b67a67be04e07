"""How much is taken out of a step at most, where it is not known what threads waited for."""

from __future__ import annotations

import pytest

from nsysdiag.replay.changes import Changes
from nsysdiag.replay.entangled import dependent, most_removed_ns
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.transforms import apply
from tests.replay.making import model_of_pair

STAGE = "decoding halved before a second stage"


def removed(name: str, *transforms: Transform) -> int:
    """What these take out of a step of the program of a pair."""
    changes = Changes.none(model_of_pair(name))
    for each in transforms:
        apply(changes, each)
    return most_removed_ns([changes])


@pytest.mark.slow
def test_all_threads_together() -> None:
    """Two workers decode for 6 ms in turns, 3 ms a step: half of that is taken out."""
    assert dependent(model_of_pair(STAGE)).any()
    assert removed(STAGE) == 0
    assert removed(STAGE, Transform("host", "decode", 0.5)) == pytest.approx(1_500_000, rel=0.15)
    assert removed(STAGE, Transform("kernel", "detect", 0.5)) == pytest.approx(250_000, rel=0.1)


@pytest.mark.slow
def test_nothing_where_all_is_known_and_for_another_order() -> None:
    assert removed("sleep as long as ever", Transform("host", "prepare", 0.5)) == 0
    assert removed(STAGE, Transform("without", "launch_latency"), Transform("overlap", "copies")) == 0
