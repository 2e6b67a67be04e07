"""The functions that threads were in, with the time that call chains and CPU samples stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.groups import evenly, sum_of_each
from nsysdiag.arrays.intervals import IntArray, Intervals, rows_from
from nsysdiag.events.callchains import CallChain, CallChains, StackFrame, Stacks, qualified
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import distinct
from nsysdiag.events.samples import PythonStacks, Samples
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.flames.facts import FlameStack
from nsysdiag.stacks.call_sites import claimed_calls
from nsysdiag.stacks.samples import without_templates

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
    first, behind = (np.searchsorted(samples.position, side) for side in (owned.spans.start, owned.spans.end))
    each = behind - first
    owner, sample = np.repeat(owned.owner, each), rows_from(first, each)
    whole, number = (
        sum_of_each(owned.owner, owned.spans.end - owned.spans.start, count),
        np.bincount(owner, minlength=count),
    )
    stand_for = np.minimum(number * samples.period_ns, whole)
    read = np.flatnonzero(evenly(np.zeros(len(owner), dtype=np.int64), MOST_READ))
    read = read[np.argsort(owner[read], kind="stable")]
    mine = np.bincount(owner[read], minlength=count)
    place = np.arange(len(read)) - np.repeat(np.cumsum(mine) - mine, mine)
    group = owner[read]
    # Whole numbers that add up to what all of the group stand for.
    low, high = (stand_for[group] * at // mine[group] for at in (place, place + 1))
    return group, samples.id[sample[read]], high - low


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
