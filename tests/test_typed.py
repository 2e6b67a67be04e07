"""Names in sentences know what they are names of, whatever they are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag import typed
from nsysdiag.fields import Text

WORDS = st.text(st.characters(exclude_characters="\ufdd0\ufdd1"), min_size=1, max_size=8)
PARTS = st.lists(st.one_of(WORDS, st.tuples(st.sampled_from(list(Text)), WORDS)), max_size=6)


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


def kinds_in(text: str) -> list[Text]:
    return [part[0] for part in typed.parts(text) if not isinstance(part, str)]


@given(PARTS)
def test_what_is_put_together_comes_apart(parts: list[typed.Part]) -> None:
    text = put_together(parts)
    assert typed.parts(text) == words_joined(parts)
    assert typed.plain(text) == "".join(part if isinstance(part, str) else part[1] for part in parts)
    assert typed.has_names(text) == any(not isinstance(part, str) for part in parts)


@given(PARTS, st.integers(0, 30))
def test_a_cut_text_is_the_beginning_of_the_whole(parts: list[typed.Part], length: int) -> None:
    text = put_together(parts)
    assert typed.plain(typed.cut(text, length)) == typed.plain(text)[:length]
    kept = kinds_in(typed.cut(text, length))
    assert kept == kinds_in(text)[: len(kept)]


@pytest.mark.parametrize("text", ["\ufdd0", "a\ufdd1b", "\ufdd0\ue105x\ufdd1"])
def test_a_name_with_such_characters_stays_one_name(text: str) -> None:
    made = typed.kernel(text)
    assert typed.parts(f"in {made} of") == ["in ", (Text.KERNEL, typed.plain(made)), " of"]
    assert not {"\ufdd0", "\ufdd1"} & set(typed.plain(made))


def test_an_empty_name_is_none() -> None:
    assert typed.thread(None) == typed.kernel("") == ""
