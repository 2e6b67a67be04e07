"""Changes of a prediction as options: read, checked and written again."""

from __future__ import annotations

import shlex

import pytest

from nsysdiag.messages import UsageError
from nsysdiag.replay.facts import Transform, chosen, scaled, text_of, words_of


@pytest.mark.parametrize(
    ("text", "of", "factor"),
    [
        ("gemm*0.5", "gemm", 0.5),
        ("*gemm**0.5", "*gemm*", 0.5),
        ("a*b*c*2", "a*b*c", 2.0),
        ("gemm*0", "gemm", 0.0),
        (" load batch * 1.25 ", "load batch", 1.25),
        ("gemm*.5", "gemm", 0.5),
        ("gemm*1e-3", "gemm", 0.001),
        ("void f<float*>(int*)*0.5", "void f<float*>(int*)", 0.5),
    ],
)
def test_the_factor_is_behind_the_last_star(text: str, of: str, factor: float) -> None:
    assert scaled("kernel", text) == Transform(option="kernel", of=of, factor=factor)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gemm", "has no factor"),
        ("*0.5", "has no name"),
        ("", "has no factor"),
        ("gemm*", "ends without a factor"),
        ("*gemm*", "ends without a factor"),
        ("gemm*half", "'half' behind its last \\* is not a factor"),
        ("gemm*-1", "'-1' behind"),
        ("gemm*nan", "'nan'"),
        ("gemm*inf", "'inf'"),
        ("gemm*1e999", "'1e999'"),
        ("gemm*1001", "from 0 to 1,000"),
        ("gemm*1_0", "'1_0'"),
    ],
)
def test_another_text_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        scaled("host", text)
    assert caught.value.hint is not None
    assert "--host 'load*" in caught.value.hint


def test_values_of_which_there_are_few() -> None:
    assert chosen("overlap", "copies") == Transform(option="overlap", of="copies")
    assert chosen("rank-like", "median") == Transform(option="rank-like", of="median")
    with pytest.raises(UsageError, match="unknown --overlap 'copy'; did you mean 'copies'") as caught:
        chosen("overlap", "copy")
    assert caught.value.hint == "values: copies, communication"


TRANSFORMS = [
    Transform(option="without", of="sync"),
    Transform(option="finding", of="f-sync-0a1b2c"),
    Transform(option="async-copies"),
    Transform(option="graphs", of="train step"),
    Transform(option="merge", of="*norm*"),
    Transform(option="workers", factor=4.0),
]


def test_text_is_what_one_would_type() -> None:
    text = text_of(TRANSFORMS)
    assert (
        text
        == "--without sync --finding f-sync-0a1b2c --async-copies --graphs 'train step' --merge '*norm*' --workers 4"
    )


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0, 1 / 3, 1e-7, 1000.0])
@pytest.mark.parametrize("of", ["gemm", "*gemm*", "load 'a' *", "ü"])
def test_text_leads_back_to_the_change(of: str, factor: float) -> None:
    made = Transform(option="kernel", of=of, factor=factor)
    option, text = shlex.split(text_of([made]))
    assert option == "--kernel"
    assert scaled("kernel", text) == made
    assert words_of(made) == [option, text]
