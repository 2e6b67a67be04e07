"""What is promised of programs whose host was captured in part, or not at all, is true, or said to be unsure."""

from __future__ import annotations

import pytest

from tests.unlike import CLASSES
from tests.unlike.test_unlike import Seen, seen

CAPTURES = {
    "CUDA": {"osrt": False, "sched": False, "samples": False},
    "CUDA and scheduling": {"osrt": False},
    "CUDA and samples": {"osrt": False, "sched": False},
}
"""What is not captured: OS calls, and in a container without rights neither scheduling nor samples."""
NOT_SEEN = {"queries_that_yield", "a_convoy_of_launching_threads"}
"""Programs of which such a trace does not show what they wait for: what they do between queries, and a free lock."""
WIDEST = 0.1
"""The median distance of the bounds, of a step."""


def captured(name: str, seed: int, capture: str) -> Seen:
    """What is said of a program that was captured so."""
    return seen(name, seed, CLASSES[name].capture.but(**CAPTURES[capture]))


@pytest.mark.sampled(quick=24, normal=6)
@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", [each for each in CLASSES if each not in NOT_SEEN])
def test_what_is_promised_holds(name: str, capture: str) -> None:
    assert [each for each in captured(name, 0, capture).promises if not each.holds] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed", "capture"),
    [
        ("a_server_of_parameters", 7100, "CUDA"),  # kernels that another thread waits for were to save nothing
        ("an_optimizer_state_on_the_host", 7100, "CUDA and scheduling"),  # host code of another thread as well
        ("a_thread_that_uploads", 7100, "CUDA and samples"),
        ("batches_by_timeout", 7100, "CUDA"),  # a timer was to be no limit
        ("requests_by_chance", 7100, "CUDA"),  # nor were requests
        ("a_prefetch_of_two", 7100, "CUDA and samples"),  # nor a loader of data
    ],
)
def test_what_was_once_wrong(name: str, seed: int, capture: str) -> None:
    assert [each for each in captured(name, seed, capture).promises if not each.holds] == []


@pytest.mark.thorough
def test_much_is_still_said() -> None:
    every = [captured(name, 0, "CUDA") for name in CLASSES]
    widths = sorted(each.high - each.low for one in every for each in one.promises)
    assert widths[len(widths) // 2] <= WIDEST
