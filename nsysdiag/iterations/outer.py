"""The loop around a loop: what comes only at every n-th repeat shows that the repeats are parts of a step.

```
repeats     |a b |a b |a b e|a b |a b |a b e|a b |a b |a b e|       every third has e as well
outer       |               |               |               |       three steps of three
```

Whether the outer repeats are the steps, or the inner ones and `e` is occasional, shows in what each has: the kernels
that update weights and the copies from the host come once in each step; a read-back alone may be a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.counts import ALIKE, RepeatCounts
from nsysdiag.iterations.happened import Happened, NameKinds
from nsysdiag.iterations.loop import FEWEST, Called, Inner, Loop, loop_of, through
from nsysdiag.iterations.named import is_step

# The repeats of a loop that have more than others: what comes only at every n-th, and where it comes.
#
# ```
# repeats     |a b |a b |a b e|a b |a b |a b e|a b |a b |a b e|       every third has e as well
# ```

REGULAR = 0.9
"""Of the distances between special repeats: so many are equal."""
FEWEST_IRREGULAR, LEAST_TOGETHER, LONGEST_IRREGULAR = 5, 2, 20
"""At no regular distance so many special repeats show a loop, if so many names come in the same ones; none is longer
than so many times the usual one."""


FEWEST_EVEN, LEAST_EVEN, LONGEST_EVEN = 8, 3, 4
"""Among repeats that are alike, one name alone does: if it comes so often, every third repeat or less often, and no
distance is longer than so many times the usual one. What comes by chance has far longer ones."""


class Special(Struct, frozen=True):
    """Repeats that have more than others: which, every n-th; the names of which each has `more`, and how often these
    happen `usually`."""

    at: IntArray
    each: int
    exact: bool
    names: NameKinds
    more: IntArray
    usually: IntArray

    @property
    def new(self) -> BoolArray:
        """Which of the names are of kernels that no other repeat has."""
        return self.names.kernel & (self.usually == 0)

    @property
    def kernels(self) -> int:
        """How many more kernels each has."""
        return int(self.more[self.names.kernel].sum())


def specials(found: RepeatCounts) -> list[Special]:
    """The groups of names that come more often than usual in the same repeats, those with the shortest distance
    first. At no regular distance a name shows something only if it comes in no other repeats: how often it comes may
    vary for another reason. One name alone does if it is one that updates weights, or hardly comes by chance."""
    groups: dict[bytes, tuple[IntArray, dict[int, int]]] = {}
    more = found.times - found.usual[found.name]
    # One range or query more shows nothing.
    rows = np.flatnonzero((more > 0) & (~found.names.host | (found.usual == 0))[found.name])
    first = np.searchsorted(found.name[rows], np.arange(len(found.usual) + 1))
    several = (np.diff(first) >= 2) & (np.diff(first) <= (found.size + 1) // 2)
    for name in np.flatnonzero(several).tolist():
        mine = rows[first[name] : first[name + 1]]
        at = found.repeat[mine].astype(np.int64)
        groups.setdefault(at.tobytes(), (at, {}))[1][name] = int(np.median(more[mine]))
    short = np.flatnonzero(found.lacks)
    if 2 <= len(short) <= (found.size + 1) // 2:
        held = enumerate(found.medians(short).tolist())
        groups.setdefault(short.tobytes(), (short, {}))[1].update({name: each for name, each in held if each})
    every = (_special(at, more, found) for at, more in _merged(groups.values()))
    return sorted(filter(None, every), key=lambda each: (not each.exact, -len(each.at), -len(each.more)))


def _merged(groups: Iterable[tuple[IntArray, dict[int, int]]]) -> list[tuple[IntArray, dict[int, int]]]:
    """With those as one that come in the same repeats, but for one of them at an end of the trace."""
    every = [(at, dict(more)) for at, more in sorted(groups, key=lambda each: -len(each[0]))]
    size, total, squares = np.array([(len(at), at.sum(), (at * at).sum()) for at, _ in every]).reshape(-1, 3).T
    merged = np.zeros(len(every), np.bool_)
    for row, (at, more) in enumerate(every):
        # Of those with one repeat more: the sums differ by that one.
        one = total - total[row]
        near = np.flatnonzero(merged & (size == size[row] + 1) & (squares - squares[row] == one * one)).tolist()
        same = next((other for other in near if np.isin(at, every[other][0]).all()), None)
        merged[row] = same is None
        if same is not None:
            every[same][1].update(more)
    return [each for each, alone in zip(every, merged.tolist(), strict=True) if alone]


def _special(at: IntArray, held: dict[int, int], found: RepeatCounts) -> Special | None:
    """None if they do not come all over the time of the loop."""
    rows, more = np.array(list(held.keys()), np.int64), np.array(list(held.values()), np.int64)
    distance = np.diff(at)
    names, usually = found.names.take(rows), found.usual[rows]
    each = int(np.median(distance))
    exact = each > 1 and float((distance == each).mean()) >= REGULAR
    longest = each + 1 if exact else LONGEST_IRREGULAR * max(each, 1)
    covers = int(at[0]) <= longest and found.size - 1 - int(at[-1]) <= longest
    even = len(at) >= FEWEST_EVEN and each >= LEAST_EVEN and int(distance.max()) <= LONGEST_EVEN * each
    even = even and found.are_alike
    shown = even or len(rows) >= LEAST_TOGETHER or bool(names.update.all())
    together = len(at) >= FEWEST_IRREGULAR and shown and int(distance.max()) <= longest
    together &= each > 1 and bool((usually == 0).any())
    return Special(at, each, exact, names, more, usually) if covers and (exact or together) else None


# Which of two levels is the step, and whether the trace shows it.

MANY_INNER = 10
"""So many repeats that get input are steps with an occasional evaluation, not micro batches."""
LIGHT_KERNELS, LIGHT_TIME = 2, 0.25
"""An addition of so few kernels, and of no more than this share of a repeat, may only read back a value."""
MANY_OTHERS = 0.5
"""Of the kernels of a repeat, and of what is added: so many of other names are a part of the program of their own."""
FEW_PARTS = 4
"""Programs hardly log or save each second to fourth step: so few repeats are the stages of one."""
ROUND = 10
"""Programs log every ten steps, or every hundred; layers and micro batches are rarely counted by tens."""


def judged(special: Special, found: RepeatCounts) -> tuple[bool, bool]:
    """Whether the outer repeats are the steps, and whether the trace shows it.

    ```
    inner                      each n-th as well             steps
    updates weights            less work than its own        inner: it is a whole step
    updates weights            more kernels of other names   not certain: the inner ones may be a part of it
    anything                   updates weights               outer: micro batches
    no input                   input                         outer: layers, sweeps
    a read-back, a wait        these, at no regular distance not certain: steps without, or requests in one batch
    input, or a read-back      kernels of other names        not certain: micro batches, or an evaluation
    input                      no kernel                     inner: a log, a checkpoint
    a read-back                a read-back, a wait           inner: a log, a checkpoint
    a read-back                other work                    not certain: iterations that read their residual
    only waits                 anything else                 not certain
    a part of a network        kernels                       outer: layers
    two to four                kernels                       outer: stages
    neither                    kernels                       not certain: parts, or output of each n-th step
    neither                    a read-back, a wait           not certain: a log, or layers of a pass
    ```
    """
    names, inner, extra = found.names, found.usual > 0, special.names
    updated, new = inner & names.update, int(special.new.sum())
    if updated.any() and np.count_nonzero(inner & names.kernel) > np.count_nonzero(updated):
        return False, not (special.exact and _outweighs(special, found))
    feeds, reads, waits = (bool(inner[kind].any()) for kind in (names.upload, names.download, names.wait))
    if extra.update.any() or (extra.upload.any() and not feeds):
        return True, special.exact or not (reads or waits)
    of_host = feeds or reads or waits
    if not special.exact:
        closes = bool(extra.download.any()) and not of_host
        return closes or (new > LIGHT_KERNELS and not feeds), feeds and (reads or waits)
    if of_host:
        logs = bool((extra.host | extra.download).all())
        return new > 0 and special.each < MANY_INNER, new == 0 and (feeds or (reads and logs))
    if extra.kernel.any() and not _light(special, found):
        parts = bool(inner[names.network].any()) or special.each <= FEW_PARTS
        return parts or special.each % ROUND > 0, parts
    return not _shifted(special, found) and special.each % ROUND > 0, False


def _shifted(special: Special, found: RepeatCounts) -> bool:
    """Whether the trace begins or ends between two special repeats: not with a whole outer one."""
    left = found.size - 1 - int(special.at[-1])
    return int(special.at[0]) + 1 < special.each or left not in (0, special.each)


def _outweighs(special: Special, found: RepeatCounts) -> bool:
    """Whether the kernels that no other repeat has are many: an evaluation has those of the steps, and few others."""
    count = int(special.more[special.new].sum())
    return count >= MANY_OTHERS * max(found.usually(found.names.kernel), special.kernels)


def _light(special: Special, found: RepeatCounts) -> bool:
    """Whether all that is added is a kernel or two and a read-back, or a wait."""
    most = min(LIGHT_KERNELS, max(LIGHT_TIME * found.usually(found.names.kernel), 1))
    return bool(special.names.download.any()) and special.kernels <= most


def goes_on(special: Special, found: RepeatCounts) -> bool:
    """Whether special repeats, at a regular distance, lack the copies from or to the host that the others have: they go
    on with what is there. Not if each repeat updates weights: it is a step."""
    exchanged = found.names.exchanged & (found.usual > 0)
    lacks = found.repeats_with(np.isin(found.repeat, special.at[:-1])) == 0
    return special.exact and bool((exchanged & lacks).any()) and not found.usually(found.names.update)


def takes_turns(special: Special, found: RepeatCounts) -> bool:
    """Whether special repeats, at a regular distance that is short, mostly have kernels that no other has, and lack
    some that all others have: two models in turn, of which each may be stepped, or both together. A few such kernels
    are another direction of a sweep."""
    own = int(special.more[special.new].sum())
    if not (special.exact and special.each < MANY_INNER and own):
        return False
    theirs = np.isin(found.repeat, special.at)
    others = found.size - 1 - np.count_nonzero(special.at < found.size - 1)
    lacks = found.repeats_with(np.isin(found.repeat, special.at[:-1])) == 0
    lacks &= found.names.kernel & (found.repeats_with(found.whole & ~theirs) == others)
    return bool(lacks.any()) and own >= MANY_OTHERS * int(found.medians(special.at)[found.names.kernel].sum())


MOST_LEVELS = 6
"""Loops, each around the one before, that are followed outwards: micro batches around layers, and steps around these. A
limit alone: the search ends earlier if nothing is around a loop."""
MOST_TRIED = 6
"""A loop is looked for from so many names of kernels."""


class OuterLoop(Struct, frozen=True):
    """A loop around another one: `steps` says whether its repeats are the steps. `certain` is False if the trace
    does not show that. `more`: each n-th repeat has more work, not only another kind of it."""

    loop: Loop
    each: int
    steps: bool
    certain: bool = True
    more: bool = True


def around(loop: Loop, happened: Happened) -> Iterator[OuterLoop]:
    """The loops around a loop, those with the fewest repeats of it first."""
    if len(loop) < 4:
        return
    found = RepeatCounts.of(happened, loop.starts, host=True)
    repeats = _Repeats(loop, found, happened)
    for special in specials(found):
        outer = _outer(repeats, special)
        if outer is not None:
            yield OuterLoop(outer, special.each, *judged(special, found))
        elif (cycle := _cycle(loop, special, happened.last)) is not None:
            steps = goes_on(special, found)
            if steps or takes_turns(special, found):
                yield OuterLoop(cycle, special.each, steps=steps, certain=False, more=False)


def outermost(loop: Loop, happened: Happened) -> Loop:
    """The loop whose repeats are steps: `loop`, or one around it. What the program calls steps are steps."""
    if is_step(loop.name):
        return loop
    for _ in range(MOST_LEVELS):
        every = list(around(loop, happened))
        steps = next((each for each in every if each.steps), None)
        if steps is None:
            doubted = next((each for each in every if not each.certain), None)
            return loop if doubted is None else loop.in_doubt(doubted.loop)
        loop = replace(steps.loop, certain=steps.certain)
    return loop


def by_sequence(happened: Happened, known: list[Loop]) -> Loop | None:
    """A loop by the order of the operations alone, for repeats that take any time: from one of a kernel to the next, or
    what is around such. None if what is between them differs, or is nothing, and if a `known` loop repeats in
    most of them."""
    whole, of_code, start = happened.whole, RowsOf(happened.code), happened.start
    often = [code for code in np.flatnonzero(happened.names.kernel).tolist() if len(of_code[code]) >= FEWEST]
    reach = {code: int(np.ptp(start[of_code[code]])) for code in often}
    often = [code for code in often if 2 * reach[code] >= whole.total()]
    often.sort(key=lambda code: (-reach[code] // max(whole.total() // 10, 1), -len(of_code[code])))
    for code in often[:MOST_TRIED]:
        base = happened.loop_from(happened.called(code), start[of_code[code]])
        loop = outermost(base, happened)
        if loop is base:
            starts = _with_same_operations(base, happened)
            if len(starts) < FEWEST:
                continue
            loop = happened.loop_from(base.called, starts)
        if len(loop) >= FEWEST and 2 * loop.total_ns >= whole.total():
            starts = np.concatenate([np.empty(0, np.int64), *(each.starts for each in known)])
            held = distinct_values(np.searchsorted(loop.starts, starts, side="right"))
            return loop if 2 * len(held) < len(loop) else None
    return None


def _with_same_operations(loop: Loop, happened: Happened) -> IntArray:
    """The starts from the first to the last repeat that does what is usual, several operations; none if many in
    between do not."""
    found = RepeatCounts.of(happened, loop.starts)
    several, same = found.usually(~found.names.host) >= LEAST_TOGETHER, np.flatnonzero(found.alike())
    if not several or not len(same) or len(same) < ALIKE * (same[-1] + 1 - same[0]):
        return loop.starts[:0]
    return loop.starts[same[0] : same[-1] + 2]


class _Repeats(Struct, frozen=True, dict=True):
    """A loop, what its repeats hold, and where they begin: what is the same for all that is around it."""

    loop: Loop
    found: RepeatCounts
    happened: Happened

    @cached_property
    def borders(self) -> IntArray:
        """The first operation of each repeat, and that behind the last one."""
        start = self.happened.start
        return np.append(np.searchsorted(start, self.loop.starts), np.searchsorted(start, self.happened.last))

    @cached_property
    def _sizes(self) -> tuple[IntArray, IntArray]:
        """The distinct numbers of operations of a repeat, and the place of each repeat's among them."""
        return distinct(self.found.operations)

    def have_more(self, some: IntArray) -> bool:
        """Whether these repeats, each once, have more operations than the others, by their medians; so if these are
        all."""
        sizes, size = self._sizes
        if len(some) == len(size):
            return True
        upto = np.cumsum(np.bincount(size, minlength=len(sizes)) - np.bincount(size[some], minlength=len(sizes)))
        middle = np.searchsorted(upto, [(upto[-1] - 1) // 2, upto[-1] // 2], side="right")
        return float(np.median(sizes[size[some]])) > float(sizes[middle].mean())

    @cached_property
    def usual_ns(self) -> int:
        """The median time from the start of a repeat to that of the next one."""
        return int(np.median(np.diff(self.loop.starts)))

    @cached_property
    def until(self) -> IntArray:
        """When all operations up to each one had ended, in ns."""
        return np.maximum.accumulate(self.happened.end)


def _outer(repeats: _Repeats, special: Special) -> Loop | None:
    """The repeats around a loop, each from the longest idle time in a special repeat on; None if these only do other
    work than the rest."""
    loop, found, happened, borders = repeats.loop, repeats.found, repeats.happened, repeats.borders
    operations, lacks = happened.start, bool(found.lacks[special.at].all())
    if not (special.names.host.all() or lacks or repeats.have_more(special.at)):
        return None
    back = _from_idle(repeats, special.at)
    starts = borders[special.at + 1] - back
    count = found.size
    whole_first = int(special.at[0]) + 1 >= special.each
    if whole_first or not special.exact:
        starts = np.append(max(int(borders[0]) - back, 0), starts)
    left = count - 1 - int(special.at[-1])
    if 2 * left < special.each:
        starts = starts[:-1]
    starts = distinct_values(operations[np.minimum(starts, len(operations) - 1)])
    if len(starts) < 2:
        return None
    inner = Inner(loop.called, special.each - lacks, repeats.usual_ns, loop.inner)
    return replace(through(_called(loop, special, happened), starts, happened.last), inner=inner)


def _cycle(loop: Loop, special: Special, end: int) -> Loop | None:
    """The repeats from behind one special repeat to the end of the next one; None for fewer than two."""
    behind = special.at[special.at + 1 < len(loop)] + 1
    starts = loop.starts[np.append(0, behind) if int(special.at[0]) + 1 == special.each else behind]
    if len(starts) < 2:
        return None
    inner = Inner(loop.called, special.each, int(np.median(np.diff(loop.starts))), loop.inner)
    return replace(loop_of(loop.called, starts, np.zeros(len(starts) - 1, np.bool_), None, end), inner=inner)


def _called(loop: Loop, special: Special, happened: Happened) -> Called:
    """By the kernel that comes once in each outer repeat; by the inner loop if there is none."""
    once = special.names.code[(special.more == 1) & special.names.kernel]
    return happened.called(int(once.min())) if len(once) and not loop.called.range else loop.called


def _from_idle(repeats: _Repeats, at: IntArray) -> int:
    """How many operations before the end of special repeats most of them are idle for longest."""
    borders, start = repeats.borders, repeats.happened.start
    inside = at[at + 2 < len(borders)]
    size = borders[inside + 1] - borders[inside]
    length = int(np.median(size)) if len(size) else 0
    if not length or float((size == length).mean()) < REGULAR:
        return 0
    inside = inside[size == length]
    rows = borders[inside + 1][:, None] - np.arange(length)
    idle = np.median(np.maximum(start[rows] - repeats.until[rows - 1], 0), axis=0)
    return int(np.argmax(idle))
