"""What a profiler's names hold: the function of a kernel, and the Python functions that run at a time."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from nsysdiag.limits import STACK_FRAMES
from nsysdiag.mangled import is_mangled, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SPECIFIERS = re.compile(r"^(?:void|static|inline|auto|__global__|int|bool|float|double) +")


@cache
def base_name(kernel: str) -> str:
    """A kernel's function alone, as nsys has it in shortName: without its type, namespaces, template arguments and
    parameters. `(anonymous namespace)::` is a namespace."""
    if is_mangled(kernel):
        return readable(kernel).partition("<")[0]
    text = _SPECIFIERS.sub("", kernel.replace("(anonymous namespace)::", ""))
    depth, kept = 0, []
    for letter in text:
        if letter == "(" and depth == 0:
            break
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and letter not in "<>":
            kept.append(letter)
    return "".join(kept).rpartition("::")[2].strip() or kernel


def functions_at(functions: list[tuple[int, int, str]], times: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    """For each of the sorted times the names of the functions that run, innermost first, where any does."""
    functions.sort(key=lambda each: (each[0], -each[1]))
    stack: list[tuple[int, str]] = []
    at = 0
    for time in times:
        while at < len(functions) and functions[at][0] <= time:
            start, end, name = functions[at]
            while stack and stack[-1][0] <= start:
                stack.pop()
            stack.append((end, name))
            at += 1
        while stack and stack[-1][0] <= time:
            stack.pop()
        if stack:
            yield time, [name for _, name in reversed(stack[-STACK_FRAMES:])]
