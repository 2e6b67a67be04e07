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

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.happened import HOST, Happened, anchor_of
from nsysdiag.iterations.loop import FEWEST, Called, Inner, Loop, loop_of, through
from nsysdiag.iterations.named import is_step

# What happens in each repeat of a loop, and what usually does.

MOST_TOKENS = 2_000
"""Names that are looked at: of more, the most frequent."""
USUAL = 0.4
"""A count that so many repeats have is usual; the smallest of such."""
LEAST_HELD = 0.75
"""Of the usual operations: a repeat with fewer is another kind of work."""


class RepeatCounts(Struct, frozen=True):
    """How often each code happens in each repeat of a loop: `count[code]` by repeat, and what is usual."""

    count: dict[int, IntArray]
    usual: dict[int, int]
    size: int

    @classmethod
    def of(
        cls, happened: Happened, starts: IntArray, end: int | None = None, issued: IntArray | None = None
    ) -> RepeatCounts:
        """Up to `end`, in ns, or all. With the calls of the host if `issued` says when those that launch each repeat
        began."""
        on_host = happened.on_host
        place = np.full(len(happened.time), -1)
        place[~on_host] = np.searchsorted(starts, happened.time[~on_host], side="right") - 1
        if issued is not None:
            place[on_host] = np.searchsorted(issued, happened.time[on_host], side="right") - 1
            early = happened.issued_early
            place[early] = np.searchsorted(issued, happened.issued_at[happened.operations[early]], side="right") - 1
        inside = np.flatnonzero((place >= 0) & (happened.time < (happened.last if end is None else end)))
        place, code = place[inside], happened.code[inside]
        of_code = RowsOf(code)
        codes = sorted(of_code.values(), key=lambda each: -len(of_code[each]))[:MOST_TOKENS]
        count = {each: np.bincount(place[of_code[each]], minlength=len(starts)) for each in codes}
        return cls(count, {each: _usual(counted[:-1]) for each, counted in count.items()}, len(starts))

    @classmethod
    def in_loop(cls, loop: Loop, happened: Happened, end: int | None = None) -> RepeatCounts:
        """With the calls of the host if those that launch the repeats are known."""
        first = np.searchsorted(happened.time[: len(happened.end)], loop.starts)
        issued = happened.issued_at[happened.operations[np.minimum(first, len(happened.operations) - 1)]]
        return cls.of(happened, loop.starts, end, None if (issued < 0).any() else np.maximum.accumulate(issued))

    def lacks(self) -> BoolArray:
        """Which repeats lack a good part of the usual operations: there the first one of a repeat comes in what is
        between the inner loops."""
        held = np.zeros(self.size, np.int64)
        for code, count in self.count.items():
            if code < HOST:
                held += np.minimum(count, self.usual[code])
        return held < LEAST_HELD * sum(usual for code, usual in self.usual.items() if code < HOST)

    def operations(self) -> IntArray:
        """How many operations each repeat has."""
        return sum((count for code, count in self.count.items() if code < HOST), start=np.zeros(self.size, np.int64))

    def alike(self) -> BoolArray:
        """Which repeats, without the last, have exactly as many of the usual operations, whatever else they have."""
        same = np.ones(self.size - 1, np.bool_)
        for code, count in self.count.items():
            if code < HOST and self.usual[code]:
                same &= count[:-1] == self.usual[code]
        return same

    def are_alike(self) -> bool:
        """Whether most repeats have the same operations, and hardly others."""
        held = sum(usual for code, usual in self.usual.items() if code < HOST)
        return float(self.alike().mean()) >= ALIKE and held >= ALIKE * float(np.median(self.operations()))


def _usual(count: IntArray) -> int:
    times = np.bincount(count)
    often = np.flatnonzero(times >= USUAL * len(count))
    return int(often[0] if len(often) else np.argmax(times))


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
    """Repeats that have more than others: which, every n-th, and by code how many more each has."""

    at: IntArray
    each: int
    exact: bool
    more: dict[int, int]


def specials(found: RepeatCounts, updates: frozenset[int]) -> list[Special]:
    """The groups of names that come more often than usual in the same repeats, those with the shortest distance
    first. At no regular distance a name shows something only if it comes in no other repeats: how often it comes may
    vary for another reason. One name alone does if it is one of the `updates` of weights, or hardly comes by
    chance."""
    groups: dict[bytes, tuple[IntArray, dict[int, int]]] = {}
    for code, count in found.count.items():
        if code >= HOST and found.usual[code]:
            continue  # one range or query more shows nothing
        more = count - found.usual[code]
        at = np.flatnonzero(more > 0)
        if 2 <= len(at) <= (found.size + 1) // 2:
            groups.setdefault(at.tobytes(), (at, {}))[1][code] = int(np.median(more[at]))
    short = np.flatnonzero(found.lacks())
    if 2 <= len(short) <= (found.size + 1) // 2:
        held = {code: int(np.median(count[short])) for code, count in found.count.items()}
        groups.setdefault(short.tobytes(), (short, {}))[1].update({code: each for code, each in held.items() if each})
    result = [
        special for at, more in _merged(groups.values()) if (special := _special(at, more, found, updates)) is not None
    ]
    return sorted(result, key=lambda each: (not each.exact, -len(each.at), -len(each.more)))


def _merged(groups: Iterable[tuple[IntArray, dict[int, int]]]) -> list[tuple[IntArray, dict[int, int]]]:
    """With those as one that come in the same repeats, but for one of them at an end of the trace."""
    merged: list[tuple[IntArray, dict[int, int]]] = []
    for at, more in sorted(groups, key=lambda each: -len(each[0])):
        same = next((each for each in merged if len(each[0]) <= len(at) + 1 and np.isin(at, each[0]).all()), None)
        if same is None:
            merged.append((at, dict(more)))
        else:
            same[1].update(more)
    return merged


def _special(at: IntArray, more: dict[int, int], found: RepeatCounts, updates: frozenset[int]) -> Special | None:
    """None if they do not come all over the time of the loop."""
    distance = np.diff(at)
    each = int(np.median(distance))
    exact = each > 1 and float((distance == each).mean()) >= REGULAR
    longest = each + 1 if exact else LONGEST_IRREGULAR * max(each, 1)
    covers = int(at[0]) <= longest and found.size - 1 - int(at[-1]) <= longest
    even = len(at) >= FEWEST_EVEN and each >= LEAST_EVEN and int(distance.max()) <= LONGEST_EVEN * each
    even &= found.are_alike()
    shown = even or len(more) >= LEAST_TOGETHER or more.keys() <= updates
    together = len(at) >= FEWEST_IRREGULAR and shown and int(distance.max()) <= longest
    together &= each > 1 and any(not found.usual[code] for code in more)
    return Special(at, each, exact, more) if covers and (exact or together) else None


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


def judged(special: Special, found: RepeatCounts, happened: Happened) -> tuple[bool, bool]:
    """Whether the outer repeats are the steps, and whether the trace shows it.

    ```
    inner                      each n-th as well             steps
    updates weights            less work than its own        inner: it is a whole step
    updates weights            more kernels of other names   not certain: the inner ones may be a part of it
    anything                   updates weights               outer: micro batches
    no input                   input                         outer: layers, sweeps
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
    inner, extra = {code for code, usual in found.usual.items() if usual > 0}, set(special.more)
    updated, added = inner & happened.updates, (extra & happened.kernels) - inner
    if updated and len(inner & happened.kernels) > len(updated):
        return False, not (special.exact and _outweighs(added, special, found, happened))
    feeds, reads, waits = (bool(inner & each) for each in (happened.uploads, happened.downloads, happened.waits))
    if extra & happened.updates or (extra & happened.uploads and not feeds):
        return True, True
    of_host = feeds or reads or waits
    if not special.exact:
        closes = bool(extra & happened.downloads) and not of_host
        return closes or (len(added) > LIGHT_KERNELS and not feeds), feeds and (reads or waits)
    if of_host:
        logs = all(code >= HOST or code in happened.downloads for code in extra)
        return bool(added) and special.each < MANY_INNER, not added and (feeds or (reads and logs))
    if extra & happened.kernels and not _light(special, found, happened):
        parts = bool(inner & happened.networks) or special.each <= FEW_PARTS
        return parts or special.each % ROUND > 0, parts
    return not _shifted(special, found) and special.each % ROUND > 0, False


def _shifted(special: Special, found: RepeatCounts) -> bool:
    """Whether the trace begins or ends between two special repeats: not with a whole outer one."""
    left = found.size - 1 - int(special.at[-1])
    return int(special.at[0]) + 1 < special.each or left not in (0, special.each)


def _outweighs(added: set[int], special: Special, found: RepeatCounts, happened: Happened) -> bool:
    """Whether the kernels that no other repeat has are many: an evaluation has those of the steps, and few others."""
    count = sum(special.more[code] for code in added)
    return count >= MANY_OTHERS * max(_kernels(found.usual, happened), _kernels(special.more, happened))


def _light(special: Special, found: RepeatCounts, happened: Happened) -> bool:
    """Whether all that is added is a kernel or two and a read-back, or a wait."""
    if not set(special.more) & happened.downloads:
        return False
    count = _kernels(special.more, happened)
    return count <= LIGHT_KERNELS and count <= max(LIGHT_TIME * _kernels(found.usual, happened), 1)


def _kernels(count: dict[int, int], happened: Happened) -> int:
    return sum(each for code, each in count.items() if code in happened.kernels)


def goes_on(special: Special, found: RepeatCounts, happened: Happened) -> bool:
    """Whether special repeats, at a regular distance, lack the copies from or to the host that the others have: they go
    on with what is there. Not if each repeat updates weights: it is a step."""
    exchanged = {code for code in happened.uploads | happened.downloads if found.usual.get(code)}
    lacks = any(not found.count[code][special.at[:-1]].any() for code in exchanged)
    return special.exact and lacks and not any(found.usual.get(code) for code in happened.updates)


def takes_turns(special: Special, found: RepeatCounts, happened: Happened) -> bool:
    """Whether special repeats, at a regular distance that is short, mostly have kernels that no other has, and lack
    some that all others have: two models in turn, of which each may be stepped, or both together. A few such kernels
    are another direction of a sweep."""
    others_lack = {code for code in special.more if code in happened.kernels and not found.usual[code]}
    kernels = sum(int(np.median(count[special.at])) for code, count in found.count.items() if code in happened.kernels)
    own = sum(special.more[code] for code in others_lack) >= max(MANY_OTHERS * kernels, 1)
    others = np.delete(np.arange(found.size - 1), special.at[special.at < found.size - 1])
    lacks = any(
        not count[special.at[:-1]].any() and count[others].all()
        for code, count in found.count.items()
        if code in happened.kernels
    )
    return special.exact and special.each < MANY_INNER and own and lacks


MOST_LEVELS = 6
ALIKE, MOST_TRIED = 0.8, 6
"""Of repeats so many have the same operations. A loop is looked for from so many names of kernels."""


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
    found = RepeatCounts.in_loop(loop, happened)
    for special in specials(found, happened.updates):
        outer = _outer(loop, special, found, happened)
        if outer is not None:
            steps, certain = judged(special, found, happened)
            yield OuterLoop(outer, special.each, steps, certain)
        elif (cycle := _cycle(loop, special, happened.last)) is not None:
            steps = goes_on(special, found, happened)
            if steps or takes_turns(special, found, happened):
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
    whole, of_code = happened.whole, RowsOf(happened.code[: len(happened.end)])
    often = [code for code in sorted(happened.kernels) if len(of_code[code]) >= FEWEST]
    reach = {code: int(np.ptp(happened.time[of_code[code]])) for code in often if len(of_code[code])}
    often = [code for code in often if 2 * reach[code] >= whole.total()]
    often.sort(key=lambda code: (-reach[code] // (whole.total() // 10), -len(of_code[code])))
    for code in often[:MOST_TRIED]:
        base = happened.loop_from(Called(anchor=anchor_of(code)), happened.time[of_code[code]])
        loop = outermost(base, happened)
        if loop is base:
            starts = _with_same_operations(base, happened)
            if len(starts) < FEWEST:
                continue
            loop = happened.loop_from(base.called, starts)
        if len(loop) >= FEWEST and 2 * loop.total_ns >= whole.total():
            starts = np.concatenate([np.empty(0, np.int64), *(each.starts for each in known)])
            held = np.unique(np.searchsorted(loop.starts, starts, side="right"))
            return loop if 2 * len(held) < len(loop) else None
    return None


def _with_same_operations(loop: Loop, happened: Happened) -> IntArray:
    """The starts from the first to the last repeat that does what is usual, several operations; none if many in
    between do not."""
    found = RepeatCounts.of(happened, loop.starts)
    several = sum(usual for code, usual in found.usual.items() if code < HOST) >= LEAST_TOGETHER
    same = np.flatnonzero(found.alike())
    if not several or not len(same) or len(same) < ALIKE * (same[-1] + 1 - same[0]):
        return loop.starts[:0]
    return loop.starts[same[0] : same[-1] + 2]


def _outer(loop: Loop, special: Special, found: RepeatCounts, happened: Happened) -> Loop | None:
    """The repeats around a loop, each from the longest idle time in a special repeat on; None if these only do other
    work than the rest."""
    operations = happened.time[: len(happened.end)]
    borders = np.append(np.searchsorted(operations, loop.starts), np.searchsorted(operations, happened.last))
    size = found.operations()
    usual = float(np.median(np.delete(size, special.at)))
    lacks = bool(found.lacks()[special.at].all())
    if any(code < HOST for code in special.more) and not lacks and float(np.median(size[special.at])) <= usual:
        return None
    back = _from_idle(borders, special.at, operations, happened.end)
    starts = borders[special.at + 1] - back
    count = found.size
    whole_first = int(special.at[0]) + 1 >= special.each
    if whole_first or not special.exact:
        starts = np.append(max(int(borders[0]) - back, 0), starts)
    left = count - 1 - int(special.at[-1])
    if 2 * left < special.each:
        starts = starts[:-1]
    starts = np.unique(operations[np.minimum(starts, len(operations) - 1)])
    if len(starts) < 2:
        return None
    inner = Inner(loop.called, special.each - lacks, int(np.median(np.diff(loop.starts))), loop.inner)
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
    once = [code for code, more in special.more.items() if more == 1 and code in happened.kernels]
    if not once or loop.called.range:
        return loop.called
    return Called(anchor=anchor_of(min(once)))


def _from_idle(borders: IntArray, at: IntArray, start: IntArray, end: IntArray) -> int:
    """How many operations before the end of special repeats most of them are idle for longest."""
    inside = at[at + 2 < len(borders)]
    size = borders[inside + 1] - borders[inside]
    if not len(inside) or float((size == np.median(size)).mean()) < REGULAR:
        return 0
    inside, length = inside[size == np.median(size)], int(np.median(size))
    until = np.maximum.accumulate(end)
    rows = borders[inside + 1][:, None] - np.arange(length)
    idle = np.median(np.maximum(start[rows] - until[rows - 1], 0), axis=0)
    return int(np.argmax(idle))
