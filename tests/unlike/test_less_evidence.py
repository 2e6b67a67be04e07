"""What is promised of programs whose host was captured in part, or not at all, or whose graphs were captured without
their kernels, is true, or said to be unsure."""

from __future__ import annotations

import pytest

from tests.iterations.known_loops.verdict import Verdict
from tests.unlike import CLASSES
from tests.unlike.test_unlike import OF_ONE_THREAD, SEVERAL, Seen, seen

CAPTURES = {
    "CUDA": {"osrt": False, "sched": False, "samples": False},
    "CUDA and scheduling": {"osrt": False},
    "CUDA and samples": {"osrt": False, "sched": False},
}
"""What is not captured: OS calls, and in a container without rights neither scheduling nor samples."""
GRAPHS = {"as a whole": {"graphs": "graph"}, "by their launch": {"graphs": "none"}}
"""How graphs are captured if their kernels are not."""
EVENTS = {"without events": {"event_rows": False}}
"""As older versions of nsys export: a stream that waits for another one does so for a reason that is not known."""
OTHERS = {
    "without synchronizations": {"sync_rows": False},
    "without their devices": {"sync_device": False},
    "by nsys 2020": {"schema": "2020"},
    "without ranges": {"nvtx": False},
}
"""What else may be missing, while the host was captured."""
WITH_EVENTS = (
    *("a_server_of_parameters", "a_thread_that_uploads", "weights_that_stream_in", "a_pipeline_over_two_gpus"),
    *("tokens_a_step_behind", "batches_by_timeout", "copies_from_far_memory", "one_forward_one_backward"),
)
WITH_GRAPHS = (
    *("graphs_in_some_steps", "drafts_that_are_verified", "tokens_a_step_behind", "an_update_in_a_graph"),
    *("prefills_among_tokens", "requests_in_one_batch", "graphs_captured_again"),
)
NOT_SEEN = {"queries_that_yield", "a_convoy_of_launching_threads", "a_quota_of_cpu_time"}
"""Programs of which such a trace does not show what they wait for: what they do between queries, a free lock, and a
CPU."""
UNMAPPED = {"two_processes_on_one_gpu"}
"""Programs of which nsys 2020 does not say that their processes share a GPU: each of them counts as having one."""
WIDEST = 0.1
"""The median distance of the bounds, of a step."""


def captured(name: str, seed: int, capture: str) -> Seen:
    """What is said of a program that was captured so."""
    return seen(name, seed, CLASSES[name].capture.but(**(CAPTURES | GRAPHS | EVENTS | OTHERS)[capture]))


@pytest.mark.sampled(quick=24, normal=6)
@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", [each for each in CLASSES if each not in NOT_SEEN])
def test_what_is_promised_holds(name: str, capture: str) -> None:
    assert [each for each in captured(name, 0, capture).promises if not each.holds] == []


@pytest.mark.sampled(quick=14, normal=2)
@pytest.mark.parametrize("capture", GRAPHS)
@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in WITH_GRAPHS for seed in (0, 10104)])
def test_what_is_promised_of_graphs_holds(name: str, seed: int, capture: str) -> None:
    found = captured(name, seed, capture)
    assert [each for each in found.promises if not each.holds] == []
    assert not (found.verdict.confidently_wrong and found.certain)


@pytest.mark.sampled(quick=8, normal=2)
@pytest.mark.parametrize("name", WITH_EVENTS)
def test_what_is_promised_without_events_holds(name: str) -> None:
    assert [each for each in captured(name, 0, "without events").promises if not each.holds] == []


@pytest.mark.sampled(quick=80, normal=16)
@pytest.mark.parametrize("capture", OTHERS)
@pytest.mark.parametrize("name", [each for each in CLASSES if each not in UNMAPPED])
def test_what_is_said_with_less_than_all_holds(name: str, capture: str) -> None:
    found = captured(name, 11001, capture)
    assert [each for each in found.promises if not each.holds] == []
    assert not (found.verdict.confidently_wrong and found.certain)
    assert [each for each in found.broken if name not in SEVERAL or not each.startswith(OF_ONE_THREAD)] == []


@pytest.mark.slow
def test_two_places_of_one_name_on_one_of_two_gpus_are_one_finding() -> None:
    assert captured("a_pipeline_over_two_gpus", 11001, "without synchronizations").broken == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("a_straggler_that_changes", 24000),  # a GPU that is late for an unknown reason had a severity
        ("a_straggler_that_changes", 27000),  # and was ordered by its share, though more is saved
        ("passes_over_chunks", 25000),  # slow steps that are a part of another finding had one
    ],
)
def test_findings_on_what_is_unknown_are_in_order(name: str, seed: int) -> None:
    assert captured(name, seed, "CUDA").broken == []


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "capture"), [(1, "CUDA"), (3, "CUDA and scheduling")])
def test_a_title_of_two_gpus_names_the_place_of_most_of_their_time(seed: int, capture: str) -> None:
    """Host code of both was mostly in a range of the first, which is less than half of it."""
    assert captured("two_gpus_at_a_barrier", seed, capture).broken == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_layers_of_a_queue_that_is_full_may_be_parts_of_steps(seed: int) -> None:
    """They were steps for certain, though the host pauses behind each tenth."""
    assert captured("a_queue_that_is_full", seed, "without ranges").verdict is Verdict.NAMED


@pytest.mark.slow
def test_graphs_run_until_an_event_behind_them_is_waited_for() -> None:
    """A wait for the event of the step before ended them: "launch overhead takes 53.6%" of 11%."""
    found = captured("tokens_a_step_behind", 10101, "by their launch")
    assert "CUDA graphs whose kernels are not in the trace take 78.4% of each step" in found.headline
    assert found.account["kernels"] == pytest.approx(0.77, abs=0.01)


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
        ("asynchronous_checkpoints", 11010, "CUDA"),  # a thread that writes checkpoints was to be no limit
        ("a_prefetch_of_two", 11010, "CUDA"),  # nor a loader that is waited for in two of 32 steps
        ("callbacks_of_streams", 3001, "CUDA"),  # nor was a function that frees a stream
        ("coroutines_of_one_thread", 11, "CUDA"),  # nor kernels that a thread asks for again and again
        ("a_server_of_parameters", 10300, "without events"),  # a copy that waited for a kernel was launched for so long
        ("weights_that_stream_in", 10300, "without events"),  # copies that did so had a pause of their device each
        ("a_thread_that_uploads", 10300, "without events"),
        ("a_pipeline_over_two_gpus", 10301, "without events"),  # kernels that waited for another GPU stayed as late
        ("graphs_in_some_steps", 10105, "by their launch"),  # copies were to save 51 to 90%, kernels 1%
    ],
)
def test_what_was_once_wrong(name: str, seed: int, capture: str) -> None:
    assert [each for each in captured(name, seed, capture).promises if not each.holds] == []


@pytest.mark.thorough
def test_much_is_still_said() -> None:
    every = [captured(name, 0, "CUDA") for name in CLASSES]
    widths = sorted(each.high - each.low for one in every for each in one.promises)
    assert widths[len(widths) // 2] <= WIDEST
