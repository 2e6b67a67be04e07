"""Numbers as planes of bytes, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.groups import from_planes, running_sums, to_planes


def array(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_the_lowest_byte_of_every_number_comes_first() -> None:
    assert to_planes(array(1, 2, 258)) == bytes([1, 2, 2, 0, 0, 1])


def test_as_few_planes_as_the_largest_needs() -> None:
    assert to_planes(array(0, 0)) == bytes([0, 0])
    assert len(to_planes(array(255, 1))) == 2
    assert len(to_planes(array(256, 1))) == 4


def test_no_numbers_are_no_bytes() -> None:
    assert to_planes(array()) == b""
    assert from_planes(b"", 0).tolist() == []
    assert from_planes(b"", 0).dtype == np.int64


def test_a_number_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="below 0"):
        to_planes(array(3, -1))


@pytest.mark.parametrize(("data", "count"), [(b"123", 2), (b"1", 0), (b"", 1), (bytes(18), 2), (b"1", -1)])
def test_what_are_no_planes_is_refused(data: bytes, count: int) -> None:
    with pytest.raises(ValueError, match="not planes"):
        from_planes(data, count)


def test_a_number_of_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="63 bits"):
        from_planes(bytes(15) + b"\x80", 2)


@pytest.mark.parametrize(("steps", "base"), [([2**62], 0), ([2**61, 2**61], 0), ([1], 2**62), ([-(2**62)], -5)])
def test_sums_that_would_wrap_around_are_refused(steps: list[int], base: int) -> None:
    with pytest.raises(ValueError, match="62 bits"):
        running_sums(array(*steps), base)


def test_running_sums() -> None:
    assert running_sums(array(3, -1, 4), 10).tolist() == [13, 12, 16]
    assert running_sums(array(), 10).tolist() == []


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_there_and_back(values: list[int]) -> None:
    assert from_planes(to_planes(array(*values)), len(values)).tolist() == values
