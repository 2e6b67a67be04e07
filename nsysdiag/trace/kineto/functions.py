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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

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


Open = TypeVar("Open", Recorded, _Open)


def open_at(
    recorded: Iterable[Recorded], times: Iterable[int], opened: Callable[[Recorded, Open | None], Open]
) -> Iterator[list[Open]]:
    """What runs at each of the sorted times, innermost last: a list that changes from one time to the next. `opened`
    makes an entry of what begins and of what it begins in. Of two that overlap without nesting the later one counts."""
    stack: list[Open] = []
    ordered = sorted(recorded, key=lambda each: (each.start, -each.end))
    begun = 0
    for time in times:
        while begun < len(ordered) and ordered[begun].start <= time:
            _close(stack, ordered[begun].start)
            stack.append(opened(ordered[begun], stack[-1] if stack else None))
            begun += 1
        _close(stack, time)
        yield stack


def _close(stack: list[Open], time: int) -> None:
    while stack and stack[-1].end <= time:
        stack.pop()


def stretches(recorded: Sequence[Recorded]) -> list[FunctionTime]:
    """The time of one thread in named functions, disjoint and in order."""
    times = sorted({time for each in recorded for time in (each.start, each.end)})
    found: list[FunctionTime] = []
    for (start, end), stack in zip(pairwise(times), open_at(recorded, times, _opened), strict=False):
        if not stack or not stack[-1].name:
            continue
        _, name, waits, _ = stack[-1]
        goes_on = bool(found) and found[-1][1:] == (start, name, waits)
        found.append(FunctionTime(found.pop().start if goes_on else start, end, name, waits))
    return found


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
