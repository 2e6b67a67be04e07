"""The names of all timelines as one directory: each once, and those that differ by counters alone as one form.

```
step 7, step 8, gemm<float>(int), step 9   ->   forms    "step #", ["gemm", "gemm<float>(int)"]
                                                used     0, 0, 1, 0
                                                column   7, +1, +1
```
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.codes import names_from, to_planes
from nsysdiag.document.names import brief, clip
from nsysdiag.errors import InputError
from nsysdiag.limits import MOST_NAMES_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.formats.html.assets import Blob, Place

LONGEST_NAME, LONGEST_SHORT = 200, 60
HOLE = "\n"
"""Stands in a form where a number was: no name that can be shown holds it."""
_NUMBER = re.compile(r"(?<!\d)(?:0|[1-9]\d{0,14})(?!\d)")
_BEFORE = re.compile(r"\w*\W*$")

Value = dict[str, object]
Shown = str | tuple[str, str]
"""A name, or its short form and the whole."""


class Directory:
    """Names by number; it grows as devices are read."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def places(self, packed: str) -> npt.NDArray[np.int64]:
        """The number of each name of a packed list. Raises InputError where the report is damaged."""
        try:
            names = names_from(packed, MOST_NAMES_BYTES)
        except ValueError as error:
            raise InputError("the timeline of this report cannot be read: the file is damaged") from error
        return np.array([self._known.setdefault(name, len(self._known)) for name in names], dtype=np.int64)

    def written(self, blob: Blob) -> Value:
        """The directory for the scripts: forms, which of them each name is, and the numbers in their holes."""
        pairs = ((clip(name, LONGEST_NAME), clip(_short(name), LONGEST_SHORT)) for name in self._known)
        shown: list[Shown] = [whole if whole == short else (short, whole) for whole, short in pairs]
        often = Counter(_form(each) for each in shown if isinstance(each, str))
        forms: dict[object, int] = {}
        columns: dict[str, tuple[int, list[int]]] = {}
        used = [
            _counted(each, forms, columns) if isinstance(each, str) and often[_form(each)] > 1 else _place(forms, each)
            for each in shown
        ]
        return {
            "count": len(used),
            "used": blob.add(to_planes(np.array(used, dtype=np.int64))),
            "forms": blob.add(json.dumps(list(forms), ensure_ascii=True, separators=(",", ":")).encode()),
            "columns": [(_differences(blob, column), len(column)) for _at, column in columns.values()],
        }


def _place(forms: dict[object, int], form: object) -> int:
    return forms.setdefault(form, len(forms))


def _counted(name: str, forms: dict[object, int], columns: dict[str, tuple[int, list[int]]]) -> int:
    """The place of a name's form, with the columns that its numbers go to: those after the same word share one."""
    pieces = _form(name).split(HOLE)
    if len(pieces) == 1:
        return _place(forms, name)
    before = (found.group() if (found := _BEFORE.search(piece)) else "" for piece in pieces[:-1])
    own = [columns.setdefault(word, (len(columns), [])) for word in before]
    for (_at, column), number in zip(own, _NUMBER.findall(name), strict=True):
        column.append(int(number))
    return _place(forms, (HOLE.join(pieces), *(at for at, _column in own)))


def _form(name: str) -> str:
    return _NUMBER.sub(HOLE, name)


def _differences(blob: Blob, column: list[int]) -> Place:
    """Each number less the one before it; even numbers stand for differences from 0 up, odd ones for those below."""
    steps = np.diff(np.array(column, dtype=np.int64), prepend=np.int64(0))
    return blob.add(to_planes(np.where(steps < 0, -2 * steps - 1, 2 * steps)))


def _short(name: str) -> str:
    """The short form of what is spelt like a C++ function; NVTX ranges may end in brackets too."""
    return brief(name) if "::" in name or "<" in name or name.startswith("void ") else name
