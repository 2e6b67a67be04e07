"""What host code was doing: the innermost functions of the CPU samples inside slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import evenly, some_of, sum_of_each
from nsysdiag.arrays.intervals import IntArray, Intervals, rows_from, searched
from nsysdiag.events.callchains import CallChain, CallChains, Origin, StackFrame, Stacks, part_of, qualified
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import joint
from nsysdiag.events.samples import PythonStacks, Samples
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.ranges.facts import FlameStack
from nsysdiag.stacks.call_sites import claimed_calls
from nsysdiag.typed import joined, say
from nsysdiag.units import format_count, format_share

LeafSymbols = Callable[[IntArray], tuple[IntArray, list[str]]]
MOST_SAMPLES = 20_000
"""CPU samples whose call chains are read, evenly spread, and stand for all of them. More take longer to read; fewer
make the shares of functions less exact. A round number: nothing depends on it closely."""
MOST_NAMES = 3
"""Innermost functions that a text names, those with most samples. It changes only the length of the text."""
FEWEST_READ = 20
"""Samples of a stretch that are read in any case, if it has them."""


def leaf_texts(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> list[Sentence]:
    """For each stretch [low, high) of positions on the thread axis: its most frequent innermost functions, with the
    number of samples: `_PyEval_EvalFrameDefault (interpreter) × 12, memcpy × 3`. Empty without call chains."""
    return [_text(counts) for counts in _counts(samples, low, high, symbols)]


def leaf_text(samples: Samples, low: IntArray, high: IntArray, symbols: LeafSymbols) -> Sentence:
    """The same of all stretches together."""
    return _text(sum(_counts(samples, low, high, symbols), Counter[str]()))


class SampledCode(Struct, frozen=True):
    """What `count` CPU samples with a call chain were in: their number by innermost function, most first; one without a
    name has the name of its module. `callers` holds the program's own function
    that called a library in more than half of the samples there. With `recorded`, these are not samples but ns, by the
    functions that the PyTorch profiler recorded. With `python` they are samples of Python's own stacks."""

    count: int
    functions: dict[str, int]
    callers: dict[str, str]
    recorded: bool = False
    python: bool = False

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
        kind = "Python" if self.python else "CPU"
        words = joined(", ", names)
        return say("{} {} {}{}: {}", format_count(self.count), kind, noun, about, words) if self.count else ""


def _readable(function: str) -> Sentence:
    """A function without most template arguments, with the part of a runtime that it belongs to."""
    return _name(without_templates(function))


def without_templates(function: str) -> str:
    """A function without parameters and most template arguments."""
    return normal_kernel(function) if "(" in function or "<" in function else function


def sampled_code(ids: IntArray, chains: CallChains, most: int = MOST_SAMPLES) -> SampledCode:
    """What the samples `ids` were in. Of more than `most` as many are read, evenly spread, and stand for all of
    them."""
    chosen = ids[some_of(len(ids), most)]
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


def python_code(marks: IntArray, python: PythonStacks, most: int) -> SampledCode:
    """What Python's own stacks were in, by the program's innermost function. Of more than `most` as many are read."""
    chosen = marks[some_of(len(marks), most)]
    found = python.stacks(chosen).values() if len(chosen) else ()
    ranked = _ranked(Counter(stack.frames[0].symbol for stack in found if stack.frames))
    counts = {name: round(count * len(marks) / len(chosen)) for name, count in ranked}
    return SampledCode(sum(counts.values()), counts, {}, python=True)


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
    return joined(
        ", ", (_name(name) + (f" × {count}" if count > 1 else "") for name, count in _ranked(counts)[:MOST_NAMES])
    )


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _name(symbol: str) -> Sentence:
    return typed.symbol(symbol) + (f" ({part})" if (part := part_of(symbol)) else "")


# The functions that threads were in, with the time that call chains and CPU samples stand for.

Code = tuple[Sentence, ...]
"""Functions, outermost first."""
MOST_STACKS, MOST_READ = 150, 200
"""Stacks of a graph; and chains of one kind that are read for it."""
LONG_NAME = 200
"""Characters of a function from which on it is shown without any template arguments."""


def code_of(
    owned: Owned, count: int, host: HostActivity, chains: CallChains, python: PythonStacks
) -> list[Counter[Code]]:
    """The ns of each of `count` groups by functions; `owned` is time on the axis of the host, and its group.

    ```
    owned     |=== group 0 =======|====== group 1 =====|
    calls        [poll    )                               the chain of the call
    samples                   .       .   .   .           each at most a sampling period
    ```

    Where Python's own stacks were sampled, they alone count. Time that nothing stands for has no functions."""
    found: list[Counter[Code]] = [Counter() for _ in range(count)]
    if len(python.marks):
        marks = Samples(*python.on_axis(host.axis), Intervals.empty())
        group, chain, ns = sampled_time(owned, count, marks)
        _add(found, group, chain, ns, python.stacks)
        left = ~np.isin(owned.owner, group)
        owned = Owned(owned.spans[left], owned.owner[left])
    for source, lane in (("cuda", host.api), ("osrt", host.os_calls)):
        claimed, owned, chain = claimed_calls(owned, lane, chains.ids(source))
        _add(found, claimed.owner, chain, claimed.spans.end - claimed.spans.start, partial(chains.stacks, source))
    _add(found, *sampled_time(owned, count, host.samples), partial(chains.stacks, "sampling"))
    return found


def sampled_code_of(owned: Owned, count: int, samples: Samples, chains: CallChains) -> list[Counter[Code]]:
    """The same by CPU samples alone."""
    found: list[Counter[Code]] = [Counter() for _ in range(count)]
    _add(found, *sampled_time(owned, count, samples), partial(chains.stacks, "sampling"))
    return found


def sampled_time(owned: Owned, count: int, samples: Samples) -> tuple[IntArray, IntArray, IntArray]:
    """Samples that are read: the group of each, its chain, and the ns that it stands for. Of many samples a few
    are read, and stand for all of their group."""
    first, behind = (searched(samples.position, side, "left") for side in (owned.spans.start, owned.spans.end))
    each = behind - first
    whole, number = (sum_of_each(owned.owner, ns, count) for ns in (owned.spans.end - owned.spans.start, each))
    stand_for = np.minimum(number * samples.period_ns, whole)
    until = np.cumsum(each)
    read = some_of(int(until[-1]) if len(until) else 0, MOST_READ)
    stretch = np.searchsorted(until, read, side="right")
    order = np.argsort(owned.owner[stretch], kind="stable")
    read, stretch = read[order], stretch[order]
    group, sample = owned.owner[stretch], behind[stretch] - until[stretch] + read
    mine = np.bincount(group, minlength=count)
    place = np.arange(len(read)) - np.repeat(np.cumsum(mine) - mine, mine)
    # Whole numbers that add up to what all of the group stand for.
    low, high = (stand_for[group] * at // mine[group] for at in (place, place + 1))
    return group, samples.id[sample], high - low


def _add(
    found: list[Counter[Code]], group: IntArray, chain: IntArray, ns: IntArray, read: Callable[[IntArray], Stacks]
) -> None:
    """Add the time of chains to their groups. Of more chains than are read, those with most time are."""
    if not len(chain):
        return
    ids, place = distinct(chain)
    stacks = read(ids[np.argsort(-sum_of_each(place, ns, len(ids)), kind="stable")[:MOST_READ]])
    words: dict[Code, int] = {}
    numbers = [words.setdefault(functions(stacks[each]), len(words)) if each in stacks else -1 for each in ids.tolist()]
    code = np.array(numbers, dtype=np.int64)[place]
    known, every = np.flatnonzero(code >= 0), list(words)
    keys, key = distinct(joint(group[known], code[known], max(len(every), 1)))
    for each, length in zip(keys.tolist(), sum_of_each(key, ns[known], len(keys)).tolist(), strict=True):
        found[each // len(every)][every[each % len(every)]] += length


def functions(stack: CallChain) -> Code:
    """The program's own functions, and the innermost one whosever it is."""
    inner = (stack.leaf,) if stack.leaf != stack.frames[0] else ()
    return tuple(map(_function, (*stack.frames[::-1], *inner)))


@lru_cache(4096)
def _function(frame: StackFrame) -> Sentence:
    """Its name, or that of its module; of Python with the file."""
    if not frame.symbol:
        return typed.name(TextKind.MODULE, frame.module)
    long = len(frame.symbol) > LONG_NAME
    name = typed.symbol(qualified(frame.symbol) or frame.symbol if long else without_templates(frame.symbol))
    return typed.say("{} ({})", name, typed.name(TextKind.MODULE, frame.module)) if frame.python else name


def folded(stacks: Sequence[FlameStack]) -> list[FlameStack]:
    """The stacks with most time; all others are part of a stack of their first frame alone. Empty ones are left out."""
    ranked = sorted(stacks, key=lambda each: -each.ns)
    total: Counter[tuple[str, tuple[Sentence, ...]]] = Counter()
    for at, each in enumerate(ranked):
        total[each.cause, tuple(each.frames if at < MOST_STACKS else each.frames[:1])] += each.ns
    return [FlameStack([*frames], ns, cause) for (cause, frames), ns in total.most_common() if ns]
