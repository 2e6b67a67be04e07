"""Which of two levels is the step, and whether the trace shows it."""

from __future__ import annotations

from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.segments import RepeatCounts
from nsysdiag.iterations.specials import Special

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
    input, or a read-back      kernels                       not certain: micro batches, or an evaluation
    input, or a read-back      a read-back, a wait           inner: a log, a checkpoint
    only waits                 anything else                 not certain
    a part of a network        kernels                       outer: layers
    two to four                kernels                       outer: stages
    neither                    kernels                       not certain: parts, or output of each n-th step
    neither                    a read-back, a wait           not certain: a log, or layers of a pass
    ```
    """
    inner, extra = {code for code, usual in found.usual.items() if usual > 0}, set(special.more)
    updated, added = inner & happened.updates, (extra & happened.kernels) - inner
    feeds, reads = bool(inner & happened.uploads), bool(inner & happened.downloads)
    if updated and len(inner & happened.kernels) > len(updated):
        return False, not (special.exact and _outweighs(added, special, found, happened))
    if extra & happened.updates or (extra & happened.uploads and not feeds):
        return True, True
    waits = bool(inner & happened.waits)
    if not special.exact:
        closes = bool(extra & happened.downloads) and not (feeds or reads or waits)
        return closes or (len(added) > LIGHT_KERNELS and not feeds), False
    if feeds or reads or waits:
        return bool(added) and special.each < MANY_INNER, not added and (feeds or reads)
    if extra & happened.kernels and not _light(special, found, happened):
        parts = bool(inner & happened.networks) or special.each <= FEW_PARTS
        return parts or special.each % ROUND > 0, parts
    shifted = int(special.at[0]) + 1 < special.each or found.size - 1 - int(special.at[-1]) not in (0, special.each)
    return not shifted and special.each % ROUND > 0, False


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
    on with what is there. Not where each repeat updates weights: it is a step."""
    exchanged = {code for code in happened.uploads | happened.downloads if found.usual.get(code)}
    lacks = any(not found.count[code][special.at[:-1]].any() for code in exchanged)
    return special.exact and lacks and not any(found.usual.get(code) for code in happened.updates)
