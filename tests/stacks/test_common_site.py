"""What many call stacks have in common."""

from __future__ import annotations

import itertools

import pytest

from nsysdiag.events.callchains import CallChain, Origin, StackFrame
from nsysdiag.stacks.call_sites import common_site, leaf_shares


def stack(*names: str, own: bool = True) -> CallChain:
    """A stack of functions; `load:8` is a Python function at a line."""
    frames = tuple(map(_frame, names))
    return CallChain(frames, own, frames[0])


def _frame(name: str) -> StackFrame:
    symbol, _, line = name.partition(":")
    return StackFrame(symbol, "app", Origin.PROGRAM, python=bool(line), line=int(line) if line else None)


def place(*stacks: CallChain) -> tuple[list[str], int, int]:
    site = common_site([("sampling", each) for each in stacks], launch=False)
    shown = [f"{frame.symbol}:{frame.line}" if frame.python else frame.symbol for frame in site.frames]
    return shown, site.chains, site.of


def test_the_innermost_that_half_of_them_share() -> None:
    """
    norm  update  train  main
    pack  update  train  main
    pack  update  train  main
                  train  main
    """
    stacks = [stack("norm", "update", "train", "main")]
    stacks += [stack("pack", "update", "train", "main")] * 2 + [stack("train", "main")]
    assert place(*stacks) == (["pack", "update", "train"], 2, 4)
    assert place(*stacks[:2], stack("scale", "update", "train", "main")) == (["update", "train", "main"], 3, 3)


def test_the_same_function_with_other_callers_is_another_place() -> None:
    stacks = [stack("alloc", f"field{number}", "start", "main") for number in range(4)]
    assert place(*stacks) == (["start", "main"], 4, 4)


def test_nothing_in_common() -> None:
    assert place(stack("a"), stack("b"), stack("c"), stack("c")) == (["c"], 2, 4)
    assert place(stack("b"), stack("a"), stack("c")) == (["a"], 1, 3)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_order_does_not_matter(order: tuple[int, ...]) -> None:
    stacks = [stack("a", "x", "main"), stack("b", "x", "main"), stack("a", "y", "main"), stack("b", "y", "main")]
    assert place(*(stacks[each] for each in order)) == (["x", "main"], 2, 4)


def test_recursion_counts_once_in_a_stack() -> None:
    assert place(stack("walk", "step", "walk", "step", "walk", "main")) == (["walk", "step", "walk"], 1, 1)


def test_library_code_counts_only_where_there_is_no_other() -> None:
    library, own = stack("poll", own=False), stack("load", "main")
    assert place(library, library, library, own) == (["load", "main"], 1, 4)
    assert place(library, library, stack("read", own=False)) == (["poll"], 2, 3)


def test_python_functions_are_the_same_at_any_line() -> None:
    stacks = [stack("load:8", "step:14"), stack("load:9", "step:14"), stack("load:9", "step:14")]
    assert place(*stacks) == (["load:9", "step:14"], 3, 3)


def test_shares_of_innermost_functions() -> None:
    stacks = [stack("a")] * 3 + [stack("b")] * 2 + [stack("")]
    assert [(each.symbol, each.share) for each in leaf_shares(stacks)] == [("a", 0.5), ("b", 0.3333), ("app", 0.1667)]
    assert leaf_shares([]) == []
