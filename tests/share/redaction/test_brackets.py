"""Where names end, and how lists of them are divided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.share.redaction.brackets import end_of_name, listed, matches


@pytest.mark.parametrize(
    ("name", "behind"),
    [
        ("acme::Layer<Patient 7, acme::Foo>::forward(const acme::Bar&) const", ", then slept"),
        ("acme::Foo::operator()(int)", " in"),
        ("acme::run(int) [clone .isra.0]", " × 3"),
        ("a::b", ": more"),
        ("acme.layers.forward", " in"),
        ("f(int(*)(char), g<h<1>>)", ""),
        ("a->b", " c"),
        ("a", ")"),
        ("f", "(int"),
        ("a<b", " c"),
    ],
)
def test_end_of_name(name: str, behind: str) -> None:
    assert end_of_name(name + behind, 0) == len(name)


def test_lists_are_divided_outside_of_brackets() -> None:
    assert listed("f<a, b>(int, int) × 2, g, h(c, d") == ["f<a, b>(int, int) × 2", "g", "h(c", "d"]


@given(st.text(alphabet="ab<>()[]{}, :-=", max_size=60))
def test_any_text(text: str) -> None:
    assert ", ".join(listed(text)) == text
    assert all(at < end <= len(text) for at, end in matches(text).items())
    assert all(at <= end_of_name(text, at) <= len(text) for at in range(len(text)))
