"""Names in sentences know what they are names of, whatever they are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag import typed
from nsysdiag.fields import TextKind

WORDS = st.text(st.characters(exclude_characters="\ufdd0\ufdd1\ufdd2"), min_size=1, max_size=8)
WHOLE = st.builds(typed.NameMark, st.sampled_from(list(TextKind)), WORDS, st.none())
SHORT = st.builds(
    lambda kind, text, rest: typed.NameMark(kind, text + rest, len(text)), st.sampled_from(list(TextKind)), WORDS, WORDS
)
PARTS = st.lists(st.one_of(WORDS, WHOLE, SHORT), max_size=6)


def put_together(parts: list[typed.Part]) -> str:
    return "".join(part if isinstance(part, str) else typed.name(*part) for part in parts)


def words_joined(parts: list[typed.Part]) -> list[typed.Part]:
    """Words that follow each other are one part."""
    found: list[typed.Part] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


@given(PARTS)
def test_what_is_put_together_comes_apart(parts: list[typed.Part]) -> None:
    text = put_together(parts)
    assert typed.parts(text) == words_joined(parts)
    assert typed.plain(text) == "".join(part if isinstance(part, str) else part.text[: part.shown] for part in parts)
    assert typed.has_names(text) == any(not isinstance(part, str) for part in parts)


@given(PARTS, st.integers(0, 30))
def test_a_cut_text_is_the_beginning_of_the_whole(parts: list[typed.Part], length: int) -> None:
    text = put_together(parts)
    assert typed.plain(typed.cut(text, length)) == typed.plain(text)[:length]
    kept = [part for part in typed.parts(typed.cut(text, length)) if not isinstance(part, str)]
    names = [part for part in parts if not isinstance(part, str)]
    assert [part[:2] for part in kept] == [part[:2] for part in names][: len(kept)]
    assert [part.shown for part in kept[:-1]] == [part.shown for part in names][: len(kept[:-1])]
    assert typed.cut(typed.cut(text, length), length) == typed.cut(text, length)


def test_of_a_long_name_the_beginning_is_read() -> None:
    text = f"in {typed.nvtx('train_step', 5)}, {typed.nvtx('eval', 5)}"
    assert typed.plain(text) == "in train, eval"
    assert typed.parts(text) == ["in ", (TextKind.RANGE, "train_step", 5), ", ", (TextKind.RANGE, "eval", None)]


@pytest.mark.parametrize("text", ["\ufdd0", "a\ufdd1b", "\ufdd0\ue105x\ufdd1", "a\ufdd2b"])
def test_a_name_with_such_characters_stays_one_name(text: str) -> None:
    made = typed.kernel(text)
    assert typed.parts(f"in {made} of") == ["in ", (TextKind.KERNEL, typed.plain(made), None), " of"]
    assert not {"\ufdd0", "\ufdd1", "\ufdd2"} & set(typed.plain(made))


def test_an_empty_name_is_none() -> None:
    assert typed.thread(None) == typed.kernel("") == ""
