"""What host code was doing: the innermost functions of the CPU samples inside slices."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.samples import Samples

LeafSymbols = Callable[[IntArray], tuple[IntArray, list[str]]]
MOST_SAMPLES = 20_000
MOST_NAMES = 3
_KINDS = (
    (
        "garbage collector",
        re.compile(r"(_?Py)?gc_|_?PyGC|subtract_refs|visit_(decref|reachable)|deduce_unreachable"),
    ),
    ("interpreter", re.compile(r"_?Py[A-Z_]|python3?(\.\d+)?|libpython|method_vectorcall|vectorcall|_PyEval|builtin_")),
)


def leaf_texts(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> list[str]:
    """For each stretch [low, high) of positions on the thread axis its commonest innermost functions, with the number
    of samples: `_PyEval_EvalFrameDefault (interpreter) × 12, memcpy × 3`; empty where no sample with a chain lies."""
    first = np.searchsorted(samples.position, low)
    count = np.searchsorted(samples.position, high) - first
    # Whole stretches in order, as many as fit: call chains of some are worth more than parts of all.
    count = np.where(np.cumsum(count) <= MOST_SAMPLES, count, 0)
    stretch = np.repeat(np.arange(len(low)), count)
    sample = np.arange(len(stretch)) + np.repeat(first - (np.cumsum(count) - count), count)
    if len(sample) == 0:
        return [""] * len(low)
    code, names = symbols(samples.id[sample])
    found: list[dict[str, int]] = [{} for _ in low]
    for at, symbol in zip(stretch[code >= 0].tolist(), code[code >= 0].tolist(), strict=True):
        found[at][names[symbol]] = found[at].get(names[symbol], 0) + 1
    return [_text(each) for each in found]


def _text(counts: dict[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]
    return ", ".join(f"{name}{_kind(name)}" + (f" × {count}" if count > 1 else "") for name, count in ranked)


def _kind(name: str) -> str:
    kind = kind_of_symbol(name)
    return f" ({kind})" if kind else ""


def kind_of_symbol(name: str) -> str:
    """`garbage collector` or `interpreter` for functions of Python's, else empty."""
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), "")
