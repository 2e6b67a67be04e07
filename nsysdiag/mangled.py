"""Names of functions that a trace has only as compilers make them."""

from __future__ import annotations

import re

CUT = "…"
_OFFLOADED = re.compile(r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(\w+?)(_l\d+)(?:_\w+)?")
_MANGLED, _LENGTH = re.compile(r"_ZN?K?"), re.compile(r"[1-9]\d{0,3}")
_FIRST_TYPE = re.compile(r"I(?:L[a-z]n?\d+E)*(?:N?S\d*_)?N?(?=[1-9])")
"""Of template arguments: what is before the first type, where no built-in one is before it."""


def is_mangled(name: str) -> bool:
    """Whether this is a name of C++ as compilers write it."""
    return name.startswith("_Z")


def readable(name: str) -> str:
    """`_ZN4work7advanceIdEEvPd` is `advance<…>`, `_ZN2ck6kentryILi1ENS_4FmhaIfEEEEvT0_` is `kentry<Fmha, …>`, and
    `__omp_offloading_10303_2a0b_main_l42` is `main_l42`. Any other name is itself."""
    offloaded = _OFFLOADED.fullmatch(name)
    name, line = (offloaded[1], offloaded[2]) if offloaded else (name, "")
    if not (mangled := _MANGLED.match(name)):
        return name + line
    found, at = _last_of(name, mangled.end())
    if not found:
        return name + line
    first = _FIRST_TYPE.match(name, at)
    argument, _ = _last_of(name, first.end()) if first else ("", at)
    arguments = f"<{argument}, {CUT}>" if argument else f"<{CUT}>" if name[at : at + 1] == "I" else ""
    return found + arguments + line


def _last_of(name: str, at: int) -> tuple[str, int]:
    """The last of the names that follow each other from here on, each behind its length, and where it ends."""
    found = ""
    while length := _LENGTH.match(name, at):
        at = length.end() + int(length[0])
        found = name[length.end() : at]
    return found, at
