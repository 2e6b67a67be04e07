"""Names in sentences know what they are names of, whatever they are made of."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag import typed
from nsysdiag.fields import TextKind

WORDS = st.text(min_size=1, max_size=8)
WHOLE = st.builds(typed.NameMark, st.sampled_from(list(TextKind)), WORDS, st.none())
SHORT = st.builds(
    lambda kind, text, rest: typed.NameMark(kind, text + rest, len(text)), st.sampled_from(list(TextKind)), WORDS, WORDS
)
PARTS = st.lists(st.one_of(WORDS, WHOLE, SHORT), max_size=6)


def put_together(parts: list[typed.Part]) -> typed.Phrase:
    return typed.joined("", (part if isinstance(part, str) else typed.name(*part) for part in parts))


def words_joined(parts: list[typed.Part]) -> tuple[typed.Part, ...]:
    """Words that follow each other are one part."""
    found: list[typed.Part] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return tuple(found)


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
    text = typed.say("in {}, {}", typed.nvtx("train_step", 5), typed.nvtx("eval", 5))
    assert typed.plain(text) == "in train, eval"
    assert text.parts == ("in ", (TextKind.RANGE, "train_step", 5), ", ", (TextKind.RANGE, "eval", None))


def test_numbers_words_and_names_fill_a_sentence() -> None:
    text = typed.say("{:,} × {call} in {{{}}}", 1234, typed.nvtx("eval"), call=typed.api("read"))
    assert text.parts == ("1,234 × ", (TextKind.API, "read", None), " in {", (TextKind.RANGE, "eval", None), "}")
    for values in ((), (1, 2)):
        with pytest.raises(TypeError):
            typed.say("{}", *values)


@pytest.mark.parametrize("lose", ["in {}".format, str, lambda text: f"{text:>9}", lambda text: "%s" % text])  # noqa: UP031
def test_no_name_is_forgotten(lose: Callable[[str], str]) -> None:
    with pytest.raises(TypeError):
        lose(typed.api("read"))
    lose(typed.say("a"))


def test_texts_around_a_name_keep_it() -> None:
    read = typed.api("read")
    assert ("in " + read + ".").parts == ("in ", *read.parts, ".")
    assert typed.capitalized("in " + read).parts == ("In ", *read.parts)
    assert typed.capitalized(read) == typed.uncapitalized(read) == typed.without("re", read) == read
    assert typed.listed([read, "poll", read]).parts == (*read.parts, ", poll and ", *read.parts)
    assert pickle.loads(pickle.dumps(read)) == read


def test_a_name_is_not_its_word() -> None:
    """So a table of texts by their code holds both."""
    assert typed.api("read") != "read"
    assert typed.api("read") != typed.symbol("read")
    assert typed.say("read") == "read"
    assert len({typed.api("read"), "read", typed.say("read"), typed.symbol("read")}) == 3


def test_an_empty_name_is_none() -> None:
    assert typed.thread(None) == typed.kernel("") == ""
