"""What host code was doing: the innermost functions of the CPU samples inside slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.groups import evenly
from nsysdiag.arrays.intervals import IntArray, rows_from
from nsysdiag.events.callchains import CallChains, Origin, part_of
from nsysdiag.events.samples import Samples
from nsysdiag.fields import Sentence
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.typed import joined, say
from nsysdiag.units import format_count, format_share

LeafSymbols = Callable[[IntArray], tuple[IntArray, list[str]]]
MOST_SAMPLES = 20_000
MOST_NAMES = 3
FEWEST_READ = 20
"""Samples of a stretch that are read in any case, if it has them."""


def leaf_texts(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> list[Sentence]:
    """For each stretch [low, high) of positions on the thread axis: its most frequent innermost functions, with the
    number of samples: `_PyEval_EvalFrameDefault (interpreter) × 12, memcpy × 3`. Empty without call chains."""
    return [_text(counts) for counts in _counts(samples, low, high, symbols)]


def leaf_text(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> Sentence:
    """The same of all stretches together."""
    return _text(_total(samples, low, high, symbols))


class SampledCode(Struct, frozen=True):
    """What `count` CPU samples with a call chain were in: their number by innermost function, most first; one without a
    name has the name of its module. `callers` holds the program's own function
    that called a library in more than half of the samples there. With `recorded`, these are not samples but ns, by the
    functions that the PyTorch profiler recorded."""

    count: int
    functions: dict[str, int]
    callers: dict[str, str]
    recorded: bool = False

    def words(self, about: str = "", most: int = MOST_NAMES) -> Sentence:
        """`34,000 CPU samples: __random 92.2% (called by fill), main 5.1%`; `about` says of what. Empty without
        samples."""
        names = [
            say("{} {}", _readable(name), format_share(count, self.count))
            + (say(" (called by {})", _readable(self.callers[name])) if name in self.callers else "")
            for name, count in list(self.functions.items())[:most]
        ]
        if self.recorded:
            return say("recorded functions{}: {}", about, joined(", ", names))
        noun = "sample" if self.count == 1 else "samples"
        return say("{} CPU {}{}: {}", format_count(self.count), noun, about, joined(", ", names)) if self.count else ""


def _readable(function: str) -> Sentence:
    """A function without most template arguments, with the part of a runtime that it belongs to."""
    return _name(without_templates(function))


def without_templates(function: str) -> str:
    """A function without parameters and most template arguments."""
    return normal_kernel(function) if "(" in function or "<" in function else function


def sampled_code(ids: IntArray, chains: CallChains, most: int = MOST_SAMPLES) -> SampledCode:
    """What the samples `ids` were in. Of more than `most` as many are read, evenly spread, and stand for all of
    them."""
    chosen = ids[evenly(np.zeros(len(ids), dtype=np.int64), most)]
    stacks = chains.stacks("sampling", chosen).values() if len(chosen) else ()
    leaves = Counter(stack.leaf.symbol or stack.leaf.module for stack in stacks)
    callers = Counter(
        (stack.leaf.symbol or stack.leaf.module, stack.frames[0].symbol or stack.frames[0].module)
        for stack in stacks
        if stack.own and stack.leaf.origin is not Origin.PROGRAM
    )
    each = len(ids) / max(len(chosen), 1)
    return SampledCode(
        count=round(leaves.total() * each),
        functions={name: round(count * each) for name, count in _ranked(leaves)},
        callers={name: caller for (name, caller), count in callers.items() if 2 * count > leaves[name]},
    )


def _total(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> Counter[str]:
    total = Counter[str]()
    for counts in _counts(samples, low, high, symbols):
        total.update(counts)
    return total


def _counts(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> list[Counter[str]]:
    first = np.searchsorted(samples.position, low)
    count = np.searchsorted(samples.position, high) - first
    stretch = np.repeat(np.arange(len(low)), count)
    sample = rows_from(first, count)
    # Of a stretch with more samples than are read, those that are read stand for all of them.
    read = evenly(stretch, max(MOST_SAMPLES // max(len(low), 1), FEWEST_READ))
    each = count / np.maximum(np.bincount(stretch[read], minlength=len(low)), 1)
    found = [Counter[str]() for _ in low]
    if len(sample):
        code, names = symbols(samples.id[sample[read]])
        known = code >= 0
        pairs = Counter(zip(stretch[read][known].tolist(), code[known].tolist(), strict=True))
        for (at, symbol), times in pairs.items():
            found[at][names[symbol]] = round(times * each[at])
    return found


def _text(counts: Counter[str]) -> Sentence:
    return joined(", ", (_name(name) + (f" × {count}" if count > 1 else "") for name, count in _commonest(counts)))


def _commonest(counts: Counter[str]) -> list[tuple[str, int]]:
    return _ranked(counts)[:MOST_NAMES]


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _name(symbol: str) -> Sentence:
    return typed.symbol(symbol) + (f" ({part})" if (part := part_of(symbol)) else "")
