"""The sampling period: one profiler samples all threads alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.analysis.causes.example import NEIGHBOUR, late
from tests.analysis.traces import only_device

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
