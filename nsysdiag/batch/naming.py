"""The names of outputs: the path of the input, made fit for every file system and for a web page, each one once.

```
a/rank0/report.sqlite -> a/rank0/report       a/rank0/report.json -> a/rank0/report-2
summary.sqlite        -> summary-2            (the batch has a summary of its own)
what?.sqlite          -> what_
```
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import PurePosixPath

from nsysdiag.output.names import visible

RESERVED = frozenset({"index", "summary", "trend", "junit", "nsysdiag", "gitlab", "github", "resume"})
"""What the batch itself calls its files, without their suffixes."""
LONGEST = 180
"""Bytes of a part of a name: file systems take 255, and there must be room for a number and a suffix."""
_UNFIT = str.maketrans(dict.fromkeys('\\/:*?"<>|', "_"))
_SUFFIXES = (".html", ".json")


def output_names(inputs: Sequence[tuple[str, str]]) -> list[str]:
    """For each input the path of its outputs, without a suffix. An input is what it is shown as, by `/`, and a path
    that tells it from others; the order of the inputs changes nothing."""
    taken = set(RESERVED)
    names: dict[tuple[str, str], str] = {}
    for each in sorted(inputs, key=lambda each: (_wanted(each[0]), *each)):
        names[each] = _free(_wanted(each[0]), taken)
        taken.add(names[each].casefold())
    return [names[each] for each in inputs]


def _free(wanted: str, taken: set[str]) -> str:
    numbered = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    return next(name for name in numbered if name.casefold() not in taken)


def _wanted(shown: str) -> str:
    path = PurePosixPath(shown)
    *folders, file = path.with_name(path.stem).parts
    return "/".join([*(_folder(each) for each in folders), _safe(file)])


def _folder(part: str) -> str:
    """A folder must not bear the name that a report could have."""
    name = _safe(part)
    return f"{name}_" if name.lower().endswith(_SUFFIXES) else name


def _safe(part: str) -> str:
    """A part that is no `..` and not hidden, holds no control character and nothing that some file system refuses."""
    name = visible(part).translate(_UNFIT).rstrip(". ")
    name = name.encode()[:LONGEST].decode(errors="ignore")
    return f"_{name.removeprefix('.')}" if name.startswith(".") or not name else name
