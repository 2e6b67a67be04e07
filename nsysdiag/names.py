"""Names that are not those of the program's text: those that compilers make, and pseudonyms in a trace whose names were
replaced.

Pseudonyms are those of the redacted report, with a mark in them.

```
report              slice                          what it is
kernel 7<1>.2       kernel·7<1>.2                  the second instance of the first variant of a template
range 3 #12         range·3 #12                    `step 12` of all ranges `step #`
thread 4            thread·4·data_loader           a thread that was named like a data loader's worker
```

Numbers in them count names, not instances. Code that removes counters from names must keep those of pseudonyms, which
it recognizes by the mark. No program's own name contains the mark.
"""

from __future__ import annotations

import re

CUT = "…"
_OFFLOADED = re.compile(r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(\w+?)(_l\d+)(?:_\w+)?")
_MANGLED, _LENGTH = re.compile(r"_ZN?K?"), re.compile(r"[1-9]\d{0,3}")
_FIRST_TYPE = re.compile(r"I(?:L[a-z]n?\d+E)*(?:N?S\d*_)?N?(?=[1-9])")
"""Of template arguments: what is before the first type, if no built-in one is before it."""


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


# Pseudonyms.

MARK = "·"
_LABEL = rf"(?:(?:kernel|nccl){MARK})?(?:kernel|range|symbol|name|(?:nccl|rccl|nvshmem){MARK}[A-Za-z]+)"
_PSEUDONYM = re.compile(
    rf"(\[?(?:torch::|std::|Py_|gc_)?{_LABEL}{MARK}[0-9]+(?:<[0-9]+>)?)(?:\.[0-9]+)?((?:{MARK}[a-z_]+)?\]?)"
    r"(?: #[\d.]+)?"
)


def pseudonym(name: str) -> str | None:
    """The pseudonym in a name, without the part that distinguishes instances; None for any other name."""
    found = _PSEUDONYM.fullmatch(name) if MARK in name else None
    return None if found is None else found[1] + found[2]
