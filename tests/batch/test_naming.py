"""Names of outputs: readable, each once, fit for any file system, and independent of the order of the inputs."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.batch.inputs import LONGEST, RESERVED, output_names


def named(*shown: str) -> list[str]:
    return output_names([(each, f"/{number}") for number, each in enumerate(shown)])


def test_the_path_without_its_suffix() -> None:
    assert named("a/rank0/report.sqlite", "a/rank1/report.sqlite") == ["a/rank0/report", "a/rank1/report"]
    assert named("train.nsys-rep", "run.1.sqlite", "plain") == ["train", "run.1", "plain"]


def test_two_of_one_name_get_numbers_that_no_order_changes() -> None:
    inputs = [("a/x.json", "/1"), ("a/x.sqlite", "/2"), ("a/X.db", "/3"), ("a/x-2.sqlite", "/4")]
    expected = dict(zip(inputs, output_names(inputs), strict=True))
    assert sorted(expected.values()) == ["a/X", "a/x-2", "a/x-2-2", "a/x-3"]
    for order in permutations(inputs):
        assert dict(zip(order, output_names(order), strict=True)) == expected


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_the_batch_keeps_its_own_files(name: str) -> None:
    assert named(f"{name}.sqlite", f"a/{name}.sqlite") == [f"{name}-2", f"a/{name}"]


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("a\x1b[31m.sqlite", "a_x1b[31m"),
        ("a\u202eb.sqlite", "a_u202eb"),
        ("a\udcffb.sqlite", "a_udcffb"),
        ('w<h>a"t|?*:.sqlite', "w_h_a_t____"),
        (".sqlite", "_sqlite"),
        (".hidden/x.sqlite", "_hidden/x"),
        ("x.html/y.sqlite", "x.html_/y"),
        ("...sqlite", "_"),
        ("a. /b .sqlite", "a/b"),
    ],
)
def test_odd_names(shown: str, name: str) -> None:
    assert named(shown) == [name]


def test_long_names_are_cut_and_still_differ() -> None:
    names = named("ä" * 200 + "1.sqlite", "ä" * 200 + "2.sqlite")
    assert len(set(names)) == 2
    assert all(len(name.encode()) <= LONGEST + 2 for name in names)


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=12), min_size=1, max_size=8))
def test_whatever_the_names(texts: list[str]) -> None:
    shown = [each for each in texts if PurePosixPath(each).name not in ("", "..")]
    inputs = [(each, str(number)) for number, each in enumerate(shown)]
    names = output_names(inputs)
    assert len({name.casefold() for name in names}) == len(inputs)
    for name in names:
        parts = name.removeprefix("/").split("/")
        assert name.isprintable()
        assert not [part for part in parts if part in ("", ".", "..") or part.startswith(".") or "\\" in part]
    shuffled = random.Random(0).sample(inputs, len(inputs))
    assert dict(zip(inputs, names, strict=True)) == dict(zip(shuffled, output_names(shuffled), strict=True))
