"""Time divided in proportion, to the nanosecond."""

from __future__ import annotations

import pytest

from nsysdiag.ranks.comparison import divided


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
