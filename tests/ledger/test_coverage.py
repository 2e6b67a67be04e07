"""Coverage: the share of the idle time that the host answers for and that the trace explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes import CAUSES
from nsysdiag.ledger.ledger import ACCEPTED, UNRESOLVED, coverage
from tests.causes.example import issued, late
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

LEFT_OUT = (
    "dispatch",
    "intra_graph",
    "unified_memory",
    "host_function",
    "stream_wait",
    "stream_barrier",
    "gpu_context_switch",
    "device_stall",
)
NOT_EXPLAINED = ("uncovered", "blocked", "launch_unknown", "graph_untraced")


def test_which_causes_are_which() -> None:
    assert frozenset(LEFT_OUT) == ACCEPTED
    assert frozenset(NOT_EXPLAINED) == UNRESOLVED


@pytest.mark.parametrize("cause", CAUSES)
def test_one_cause_alone(cause: str) -> None:
    expected = None if cause in LEFT_OUT else 0.0 if cause in NOT_EXPLAINED else 1.0
    assert coverage({cause: 1_000}) == expected


@pytest.mark.parametrize(
    ("total", "share"),
    [
        ({}, None),
        ({"sync": 300, "uncovered": 100}, 0.75),
        ({"sync": 300, "uncovered": 25, "blocked": 25, "launch_unknown": 25, "graph_untraced": 25}, 0.75),
        ({"sync": 300, "uncovered": 100, "device_stall": 5_000, "dispatch": 70}, 0.75),
        (dict.fromkeys(LEFT_OUT, 10), None),
    ],
)
def test_the_formula(total: dict[str, int], share: float | None) -> None:
    assert coverage(total) == share


def test_of_a_device(tmp_path: Path) -> None:
    """
    device  [==A==)  130_000 unknown, 40_000 read, 20_000 launching  [==B==)
    """
    device = only_device(late().osrt("read", 150_000, 190_000), tmp_path)
    assert device.coverage == round(1 - 130_000 / 190_000, 6)
    assert [gap.confidence for gap in device.gaps] == [round(60_000 / 190_000, 4)]


def test_of_a_device_whose_host_answers_for_nothing(tmp_path: Path) -> None:
    assert only_device(issued(), tmp_path).coverage is None
