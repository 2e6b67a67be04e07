"""Time divided in proportion, to the nanosecond, and in words."""

from __future__ import annotations

import pytest

from nsysdiag.ranks.comparison import _because
from nsysdiag.ranks.facts import RankWait
from nsysdiag.ranks.stragglers import divided


@pytest.mark.parametrize(
    ("ns", "shares", "expected"),
    [
        (100, {}, {}),
        (100, {"a": 0}, {}),
        (100, {"a": 1}, {"a": 100}),
        (100, {"a": 1, "b": 2}, {"a": 33, "b": 67}),
        (10, {"a": 1, "b": 1, "c": 1}, {"a": 4, "b": 3, "c": 3}),
    ],
)
def test_no_nanosecond_is_lost(ns: int, shares: dict[str, int], expected: dict[str, int]) -> None:
    assert divided(ns, shares) == expected


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ({}, ""),
        ({"compute": 30, "host_compute": 70}, ", late because of: host code 70.0%"),
        ({"compute": 70, "host_compute": 30}, ", late because of: compute 70.0%"),
    ],
)
def test_the_largest_reason_is_named(causes: dict[str, int], expected: str) -> None:
    assert _because(RankWait(rank="a", late_rank="b", wait_ns=100, causes=causes)) == expected
