"""The sampling period: one profiler samples all threads alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.causes.example import NEIGHBOUR, late
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path


def test_a_waiting_thread_s_period_is_no_longer_than_a_busy_one_s(tmp_path: Path) -> None:
    """
    neighbour  . . . . . . . . . . .     1 ms apart: it computes all the time
    thread     .              .          10 ms apart: it waited in between, and each sample stands for 1 ms
    """
    trace = late(40_000_000).sample(10_000_000).sample(20_000_000)
    for number in range(30):
        trace.sample(1_000_000 * (number + 1), thread=NEIGHBOUR)
    assert only_device(trace, tmp_path).ledger["host_compute"] == 2_000_000


def test_a_few_samples_of_another_thread_say_nothing(tmp_path: Path) -> None:
    """
    neighbour  . . .                     1 ms apart, but too few to go by
    thread     .              .          10 ms apart, and its own median
    """
    trace = late(40_000_000).sample(10_000_000).sample(20_000_000)
    for number in range(3):
        trace.sample(1_000_000 * (number + 1), thread=NEIGHBOUR)
    assert only_device(trace, tmp_path).ledger["host_compute"] == 20_000_000


def test_steps_that_are_not_even_are_no_period(tmp_path: Path) -> None:
    """
    thread     .     .           .       .     3 to 9 ms apart: it waited, and each sample stands for 1 ms
    """
    trace = late(40_000_000)
    for moment in (4_000_000, 7_000_000, 16_000_000, 21_000_000):
        trace.sample(moment)
    assert only_device(trace, tmp_path).ledger["host_compute"] == 4_000_000


def test_a_sample_inside_a_call_says_nothing_of_the_time_after_it(tmp_path: Path) -> None:
    """
    call       [======)                        cudaStreamSynchronize from 3 to 5.1 ms
    thread         . .       . . .             samples in it, then nothing for 9 ms: the thread waited on
    """
    trace = late(40_000_000).api("cudaStreamSynchronize", 3_000_000, 5_100_000)
    for moment in (4_000_000, 5_000_000, 14_000_000, 15_000_000, 16_000_000):
        trace.sample(moment)
    ledger = only_device(trace, tmp_path).ledger
    assert ledger["sync"] == 2_100_000
    assert ledger["host_compute"] == 3_000_000


def test_a_thread_that_ran_on_after_a_call_computed(tmp_path: Path) -> None:
    """
    call       [======)                        cudaStreamSynchronize from 3 to 5.1 ms
    thread         . . . .                     samples in it and right after it, 1 ms apart
    """
    trace = late(40_000_000).api("cudaStreamSynchronize", 3_000_000, 5_100_000)
    for moment in (4_000_000, 5_000_000, 6_000_000, 7_000_000):
        trace.sample(moment)
    ledger = only_device(trace, tmp_path).ledger
    assert ledger["sync"] == 2_100_000
    assert ledger["host_compute"] == 2_400_000
