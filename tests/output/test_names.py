"""Names made safe to look at."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsysdiag.document.names import brief, clip, visible

# Any character at all, lone surrogates too: a name may hold anything.
anything = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gemm<float, 4>", "gemm<float, 4>"),
        ("größe 日本", "größe 日本"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\tc\r\0", "a\\nb\\tc\\r\\0"),
        ("\u202eevil", "\\u202eevil"),
        ("\u2066x\u200b", "\\u2066x\\u200b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_visible(name: str, shown: str) -> None:
    assert visible(name) == shown


@given(anything)
@example("\ud800\u2028")
def test_visible_text_is_inert_and_stays_as_it_is(name: str) -> None:
    shown = visible(name)
    assert shown.isprintable()
    assert visible(shown) == shown
    shown.encode()


@given(anything, st.integers(4, 60))
def test_clip_keeps_both_ends(name: str, limit: int) -> None:
    shown, whole = clip(name, limit), visible(name)
    assert len(shown) <= limit
    if len(whole) > limit:
        head, tail = shown.split("…", 1) if "…" not in whole else (shown[:1], shown[-1:])
        assert whole.startswith(head)
        assert whole.endswith(tail)
    else:
        assert shown == whole


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::fill<4, float>(float*, int)", "at::native::fill"),
        ("ns::f<g<h>>::run(int (*)(int))", "ns::f::run"),
        ("(anonymous namespace)::k(int)", "(anonymous namespace)::k"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("[CUDA memcpy HtoD]", "[CUDA memcpy HtoD]"),
        ("<>", "<>"),
        ("(", "("),
        ("", ""),
    ],
)
def test_brief(name: str, short: str) -> None:
    assert brief(name) == short


@given(anything)
def test_brief_never_empties_a_name(name: str) -> None:
    assert bool(brief(name)) == bool(name)
