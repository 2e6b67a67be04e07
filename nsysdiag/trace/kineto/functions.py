"""What a thread was in at any time, by the operators and Python functions that the profiler recorded.

```
Python     [ model.py(7): forward ----------------------------)
                 [ functional.py(9): linear ------)
operators              [ aten::linear ------)
                          [ aten::mm --)
found      [forward)[linear)[::linear)[mm)[::linear)[linear)[forward)
```

An operator speaks for the Python functions inside it, and a function for the built-in ones that it calls. Built-in
functions that wait have names of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from nsysdiag.limits import STACK_FRAMES
from nsysdiag.names import is_mangled, readable

FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)
"""A Python function as the profiler names it: `/a/model.py(7): forward`."""
_SOURCE = re.compile(r"(?:.*/)?([^/]+)\.pyx?", re.DOTALL)
_WAIT = re.compile(
    r"<built-in (?:function (?P<function>sleep|select|poll|read|write|fsync|waitpid|accept|connect)"
    r"|method (?P<method>\w+) of (?P<type>(?:_thread|_queue|_?socket|_multiprocessing|select|_io)\.\w+) object.*)>"
)
"""Built-in functions that wait, of the types that are made for it."""
_OS_CALLS = re.compile(r"(recv|read|send|write)(?:from)?(?:_?into|line|lines|all|1)?")


class Recorded(NamedTuple):
    """An operator, or else a Python function, that ran in [start, end)."""

    start: int
    end: int
    name: str
    operator: bool


class FunctionTime(NamedTuple):
    """Time [start, end) in which a thread was in `name`; `waits`: a function that waits."""

    start: int
    end: int
    name: str
    waits: bool


class _Open(NamedTuple):
    end: int
    name: str
    waits: bool
    operator: bool


def stretches(recorded: Iterable[Recorded]) -> Iterator[FunctionTime]:
    """The time of one thread in named functions, disjoint and in order."""
    last: FunctionTime | None = None
    for each in _pieces(recorded):
        if last is not None and last.end == each.start and last[2:] == each[2:]:
            last = last._replace(end=each.end)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _pieces(recorded: Iterable[Recorded]) -> Iterator[FunctionTime]:
    """The same, cut wherever a function begins or ends. Of two that overlap without nesting the later one counts."""
    stack: list[_Open] = []
    now = 0
    for each in sorted(recorded, key=lambda each: (each.start, -each.end)):
        yield from _until(stack, now, each.start)
        now = each.start
        stack.append(_opened(each, stack[-1] if stack else None))
    yield from _until(stack, now, max((each.end for each in stack), default=now))


def _until(stack: list[_Open], now: int, time: int) -> Iterator[FunctionTime]:
    """What is on the stack from now to then; what has ended by then is taken off."""
    while stack and (now < time or stack[-1].end <= time):
        top = stack[-1]
        if top.name and min(top.end, time) > now:
            yield FunctionTime(now, min(top.end, time), top.name, top.waits)
        now = max(now, min(top.end, time))
        if top.end > time:
            break
        stack.pop()


def _opened(each: Recorded, inside: _Open | None) -> _Open:
    name, waits = (each.name, False) if each.operator else _readable(each.name)
    operator = each.operator or (inside is not None and inside.operator)
    if inside is not None and not waits and not each.operator and (inside.operator or not name):
        name, waits = inside.name, inside.waits
    return _Open(each.end, name, waits, operator)


def _readable(function: str) -> tuple[str, bool]:
    """`/a/model.py(7): forward` as `model.forward:7`, a wait as `lock.acquire` or as the call that it
    makes, and whether it waits; empty for other built-in functions and for modules."""
    frame = FRAME.fullmatch(function)
    if frame and (source := _SOURCE.fullmatch(frame["file"])):
        return f"{source[1]}.{frame['function']}:{frame['line']}", False
    found = _WAIT.fullmatch(function)
    if found is None:
        return "", False
    module, _, kind = (found["type"] or "").partition(".")
    if module in ("_thread", "_queue", "_multiprocessing"):
        return f"{kind}.{found['method']}", True
    name = found["function"] or found["method"]
    call = _OS_CALLS.fullmatch(name)
    return call[1] if call else name, True


# What a profiler's names hold: the function of a kernel, and the Python functions that run at a time.

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
