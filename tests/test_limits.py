"""Caps on what an input controls: names that are cut stay apart, and what runs over names takes linear time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from nsysdiag.document.names import brief, clip
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.limits import HEAD_CHARACTERS, NAME_CHARACTERS, PATH_CHARACTERS, mark_of, short_name, short_path
from nsysdiag.share.names import Names

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = "void gemm<" + "float, 12, " * NAME_CHARACTERS + "1>(int)"
HOSTILE = {
    "open brackets": lambda size: "<" * size,
    "namespaces": lambda size: "a::" * (size // 3),
    "nested templates": lambda size: "a<" * (size // 3) + ">" * (size // 3),
    "digits": lambda size: "a" + "1" * (size - 2) + "a",
    "counters": lambda size: "1_" * (size // 2),
    "signature": lambda size: "k_" + "1d" * (size // 2 - 2) + "x",
    "lambdas": lambda size: "::[lambda" * (size // 9),
    "commas": lambda size: f"f<{',' * (size - 3)}>",
}
OVER_NAMES: dict[str, Callable[[str], object]] = {
    "normal_kernel": normal_kernel,
    "normal_range": normal_range,
    "brief": brief,
    "clip": lambda name: clip(name, 60),
    "pseudonym of a kernel": lambda name: Names().of("kernel", name),
    "pseudonym of a range": lambda name: Names().of("range", name),
}
STEEPEST = 10
"""Four times the length takes sixteen times as long where time is quadratic, and four times where it is linear."""


def test_a_name_up_to_the_limit_stays() -> None:
    assert short_name("k" * NAME_CHARACTERS) == "k" * NAME_CHARACTERS
    assert mark_of("gemm") == mark_of("") == mark_of("…#abc") == ""


def test_names_that_differ_behind_the_cut_stay_apart() -> None:
    one, other = short_name(LONG + "a"), short_name(LONG + "b")
    assert one != other
    assert one[:HEAD_CHARACTERS] == other[:HEAD_CHARACTERS] == LONG[:HEAD_CHARACTERS]
    assert len(one) == HEAD_CHARACTERS + len(mark_of(one))
    assert short_name("\ud800" * 9_999).startswith("\ud800")


@pytest.mark.parametrize("form", [short_name, normal_kernel, normal_range])
def test_the_form_of_a_form_is_itself(form: Callable[[str], str]) -> None:
    assert form(form(short_name(LONG))) == form(short_name(LONG))
    assert mark_of(form(short_name(LONG))) == mark_of(short_name(LONG))


def test_a_long_kernel_name_and_its_short_one_are_one() -> None:
    assert normal_kernel(LONG) == normal_kernel(short_name(LONG)) == short_name(LONG)
    names = Names()
    assert names.of("kernel", LONG) == names.of("kernel", short_name(LONG)) != names.of("kernel", LONG + "b")


def test_long_paths() -> None:
    few = ["outer", "k" * (PATH_CHARACTERS - 5)]
    assert short_path(few) == few
    many = ["k" * 1_000 + str(number) for number in range(64)]
    made = short_path(many)
    assert len(set(made)) == 64
    assert sum(map(len, made)) <= 64 * 64
    assert short_path(["outer", *many])[0] == "outer"


@pytest.mark.parametrize("shape", HOSTILE)
@pytest.mark.parametrize("what", OVER_NAMES)
def test_time_is_linear_in_the_length_of_a_name(what: str, shape: str) -> None:
    part, whole = (HOSTILE[shape](size) for size in (NAME_CHARACTERS // 4, NAME_CHARACTERS))
    assert spent(OVER_NAMES[what], whole) < STEEPEST * max(spent(OVER_NAMES[what], part), 20_000)


def spent(run: Callable[[str], object], name: str) -> int:
    """The least CPU ns of some runs."""
    times = []
    for _ in range(5):
        before = time.process_time_ns()
        run(name)
        times.append(time.process_time_ns() - before)
    return min(times)
