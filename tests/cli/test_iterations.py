"""The value of `--iterations`: what it selects is what a Python slice selects, and the rest is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.cli.options import parse_iterations
from nsysdiag.messages import UsageError

bound = st.none() | st.integers(-12, 12)


@given(bound, bound, st.integers(1, 12))
def test_a_span_is_a_slice(first: int | None, behind: int | None, count: int) -> None:
    text = ":".join("" if each is None else str(each) for each in (first, behind))
    selected = list(range(count))[first:behind]
    try:
        assert list(range(count))[slice(*parse_iterations(text))] == selected
    except UsageError:
        assert selected == []


@given(st.integers(-12, 12), st.integers(13, 20))
def test_a_number_is_one(number: int, count: int) -> None:
    assert list(range(count))[slice(*parse_iterations(str(number)))] == [list(range(count))[number]]


@pytest.mark.parametrize(
    "text", ["", " ", "a", "a:b", "1:2:3", "1.5", "1-3", "1,3", "3..5", "--", "1 2", "٣", "9" * 19]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range of iterations") as caught:
        parse_iterations(text)
    assert "3:10" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["4:4", "4:2", "-2:-4", "-4:-4", "0:0", ":0", "-3:0"])
def test_what_holds_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no iteration is in"):
        parse_iterations(text)
