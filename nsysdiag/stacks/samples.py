"""What host code was doing: the innermost functions of the CPU samples inside slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import IntArray, rows_from
from nsysdiag.events.program_code import part_of
from nsysdiag.events.samples import Samples
from nsysdiag.units import format_share

LeafSymbols = Callable[[IntArray], tuple[IntArray, list[str]]]
MOST_SAMPLES = 20_000
MOST_NAMES = 3


def leaf_texts(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> list[str]:
    """For each stretch [low, high) of positions on the thread axis: its most frequent innermost functions, with the
    number of samples: `_PyEval_EvalFrameDefault (interpreter) × 12, memcpy × 3`. Empty without call chains."""
    return [_text(counts) for counts in _counts(samples, low, high, symbols)]


def leaf_text(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> str:
    """The same of all stretches together."""
    return _text(_total(samples, low, high, symbols))


def leaf_shares(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> str:
    """The commonest innermost functions of all stretches together, with their share of the samples there: `main 52.3%,
    libm.so.6 46.0%`; empty where no sample has a chain."""
    total = _total(samples, low, high, symbols)
    parts = [f"{_name(name)} {format_share(count, total.total())}" for name, count in _commonest(total)]
    return ", ".join(parts)


def _total(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> Counter[str]:
    total = Counter[str]()
    for counts in _counts(samples, low, high, symbols):
        total.update(counts)
    return total


def _counts(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> list[Counter[str]]:
    first = np.searchsorted(samples.position, low)
    count = np.searchsorted(samples.position, high) - first
    # Whole stretches in order, as many as fit: call chains of some are worth more than parts of all.
    count = np.where(np.cumsum(count) <= MOST_SAMPLES, count, 0)
    stretch = np.repeat(np.arange(len(low)), count)
    sample = rows_from(first, count)
    found = [Counter[str]() for _ in low]
    if len(sample):
        code, names = symbols(samples.id[sample])
        for at, symbol in zip(stretch[code >= 0].tolist(), code[code >= 0].tolist(), strict=True):
            found[at][names[symbol]] += 1
    return found


def _text(counts: Counter[str]) -> str:
    return ", ".join(_name(name) + (f" × {count}" if count > 1 else "") for name, count in _commonest(counts))


def _commonest(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]


def _name(symbol: str) -> str:
    return typed.symbol(symbol) + (f" ({part})" if (part := part_of(symbol)) else "")
