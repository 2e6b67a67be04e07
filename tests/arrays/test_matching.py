"""Names are matched as if each were searched by itself."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsysdiag
from nsysdiag.arrays.matching import FEW, candidates, held, matching
from nsysdiag.kernels.kinds import (
    FAMILIES,
    KernelFamily,
    family_of,
    family_title,
    kind_of_kernel,
    kinds_of_names,
    titles_of,
)
from nsysdiag.kernels.names import NamedKernels
from nsysdiag.phases import serving
from nsysdiag.programs.names import RULES


def patterns_of_names() -> list[re.Pattern[str]]:
    """All compiled patterns of the modules that look at names."""
    packages = ("kernels", "phases", "iterations", "wakeups", "account", "findings", "causes", "events")
    found = set()
    for package in packages:
        for module in walk_packages([f"{nsysdiag.__path__[0]}/{package}"], f"nsysdiag.{package}."):
            values = vars(import_module(module.name)).values()
            found |= {each for each in values if isinstance(each, re.Pattern) and isinstance(each.pattern, str)}
    found |= {pattern for pattern, _ in serving._BY_NAME}
    found |= {re.compile(pattern) for rule in RULES.values() for pattern in rule.values()}
    return sorted(found, key=lambda each: (each.pattern, each.flags))


PATTERNS = patterns_of_names()
PIECES = sorted({word for each in PATTERNS for word in held(each.pattern, each.flags)})


def test_most_patterns_are_looked_for_by_words() -> None:
    known = [each for each in PATTERNS if held(each.pattern, each.flags)]
    assert len(PATTERNS) > 100
    assert len(known) > len(PATTERNS) / 2


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda each: each.pattern[:40])
@settings(max_examples=20)
@given(data=st.data())
def test_a_match_holds_one_of_the_words(pattern: re.Pattern[str], data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(codec="ascii")))
    words = held(pattern.pattern, pattern.flags)
    assert not words or any(word in text.lower() for word in words)


NAMES = st.lists(st.sampled_from([*PIECES, "_", "::", "<", "1", "K", "\n", "K", "ſ", "x "]), max_size=4).map("".join)


@given(names=st.lists(NAMES, min_size=1, max_size=12), at=st.integers(0, len(PATTERNS) - 1), upper=st.booleans())
def test_it_is_what_a_search_of_each_finds(names: list[str], at: int, upper: bool) -> None:
    texts = ([name.upper() for name in names] if upper else names) * (FEW + 1)
    expected = [PATTERNS[at].search(text) is not None for text in texts]
    assert matching(PATTERNS[at], texts).tolist() == expected
    assert (candidates(PATTERNS[at : at + 3], texts) >= expected).all()


def test_few_of_many_are_searched() -> None:
    texts = [f"kernel_{number}" for number in range(10_000)] + ["a gemm", "FMHA"]
    assert np.flatnonzero(candidates(FAMILIES, texts)).tolist() == [10_000, 10_001]


def test_without_a_word_all_are_searched() -> None:
    assert candidates([re.compile(r"\d+"), re.compile("gemm")], ["a"] * (FEW + 1)).all()
    assert candidates([], ["a"] * (FEW + 1)).all()


@given(names=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=12))
def test_kernels_are_of_the_family_of_their_names(names: list[tuple[str, str]]) -> None:
    every = names * (FEW + 1)
    found = NamedKernels(np.arange(len(every)), [whole for whole, _ in every], [short for _, short in every])
    assert [KernelFamily(each) for each in found.told(family_of, FAMILIES)] == [family_of(*each) for each in every]
    kinds = [kind_of_kernel(family_of(*each), each[0]) for each in every]
    assert kinds_of_names(found) == kinds
    family = found.each(family_of, FAMILIES)
    titles = [family_title(family_of(*each), each[0]) for each in every]
    assert titles_of(family, found.whole) == titles
    codes = [serving.code_of(*each) for each in every]
    assert found.told(serving.code_of, serving._TELLING, serving._OTHER).tolist() == codes
