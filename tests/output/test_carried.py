"""Bytes as a page carries them: back as they were, and nothing in them that HTML or JSON would take for its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.formats.html.assets import asset, to_carried
from tests.output.carrying import from_carried


@given(st.binary(max_size=200))
def test_comes_back(data: bytes) -> None:
    text = to_carried(data)
    assert from_carried(text) == data
    assert not set(text) & set("<>&'\"\\")


def test_takes_five_letters_for_four_bytes() -> None:
    assert len(to_carried(bytes(range(256)) * 4)) == 1280


def test_the_script_knows_the_same_letters() -> None:
    (letters,) = re.findall(r'const LETTERS = "([^"]+)";', asset("unpack.js"))
    words = b"".join((at * 85**4).to_bytes(4, "big") for at in range(51))
    assert [text[0] for text in re.findall(".{5}", to_carried(words))] == list(letters[:51])
    assert [to_carried(bytes([0, 0, 0, at]))[-1] for at in range(85)] == list(letters)


def test_other_text_is_refused() -> None:
    with pytest.raises(ValueError, match="base85"):
        from_carried("a b")
