"""Calls that ask something outside of the program in each step, and return at once: the source is ahead, or drops.

```
as it was    [recv][waits for the encoder ........][recv][waits for the encoder ........]
repaired     [recv ......][recv ......][recv ......]     no faster than the source, which the recording does not show
```
"""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, coverage, union
from nsysdiag.causes import PLACE
from nsysdiag.causes.io_wait import CAUSE as IO_WAIT
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import distinct
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.pacing import LEAST_PART, MANY

_DEVICES = re.compile(r"_*(accept4?|ioctl)")
"""Calls that ask a device, or other computers."""
_MESSAGES = re.compile(r"_*(recv\w*|p?poll|p?select6?|epoll_p?wait2?|mq_\w*receive|msgrcv)(_chk)?")
"""Calls that wait for others, and never read a file."""
_SENDS = re.compile(r"_*(send\w*|p?writev?(64)?|mq_\w*send|msgsnd)(_chk)?")
"""Calls that answer these: another thread that sends in each step may feed who asks, although no wait tells so."""


def source_may_limit(changes: Changes) -> bool:
    """Whether a source of which the pace is not known may hold back the changed steps. A thread still asks it,
    and did so in MANY of them. In most it did not wait: a call took less than LEAST_PART of a step. A source that a
    recorded thread feeds is known; waits in most steps are `Timed`."""
    model = changes.model
    stretch, pieces = model.stretch, model.pieces
    if not stretch.stepwise or not len(pieces):
        return False
    lane = pieces.start // model.host.host.axis.stride
    messages, unknown = _named(model, _MESSAGES), _unknown(model)
    kind = joint(lane, pieces.call, len(model.words) + 1)
    # Who was woken once by a recorded thread, or may be fed by one, knows the pace.
    waited = messages & ~unknown & (model.call_of_piece < 0)
    fed = (messages & _others_send(model, lane)) | np.isin(kind, kind[waited])
    asked = (messages | _named(model, _DEVICES)) & ~fed & unknown & (changes.time >= 1)
    return _ahead(model, kind, np.flatnonzero(asked))


def _others_send(model: Model, lane: IntArray) -> BoolArray:
    """Whether another thread than that of each piece, whose `lane` is given, sends something in MANY steps."""
    sending = np.flatnonzero(_named(model, _SENDS))
    sender, number = distinct(lane[sending])
    senders = sender[_steps(model, number, sending) >= MANY * model.stretch.count]
    return np.full(len(lane), len(senders) > 1) | ((lane != senders[0]) if len(senders) else False)


def _named(model: Model, pattern: re.Pattern[str]) -> BoolArray:
    """Which pieces of host time are in a call of such a name."""
    named = np.array([*(pattern.fullmatch(each) is not None for each in model.words), False])
    result: BoolArray = named[model.pieces.call]
    return result


def _unknown(model: Model) -> BoolArray:
    """Which pieces no recorded thread ended. Within a CUDA call it is the driver that asks its device."""
    pieces, woken = model.pieces, model.threads.woken
    known = union(model.on_axis(woken.thread, woken.begin, woken.end))
    driver = (model.call_of_piece >= 0) | (coverage(union(model.host.host.api.spans), pieces.spans) > 0)
    unknown: BoolArray = (pieces.cause == PLACE[IO_WAIT.id]) & ~driver & (coverage(known, pieces.spans) == 0)
    return unknown


def _ahead(model: Model, kind: IntArray, rows: IntArray) -> bool:
    """Whether a thread asked in MANY steps by the same call, of the same `kind`, and did not wait in most of these;
    `rows` are the pieces in which one asks."""
    pieces, stretch = model.pieces, model.stretch
    number = distinct(kind[rows])[1]
    soon = (pieces.end - pieces.start)[rows] < LEAST_PART * (stretch.end - stretch.begin) / stretch.count
    asking, at_once = _steps(model, number, rows), _steps(model, number[soon], rows[soon])
    at_once = np.append(at_once, np.zeros(len(asking) - len(at_once), dtype=np.int64))
    return bool(((asking >= MANY * stretch.count) & (2 * at_once > asking)).any())


def _steps(model: Model, kind: IntArray, rows: IntArray) -> IntArray:
    """In how many steps each kind of pieces is."""
    step = np.searchsorted(model.stretch.borders, model.host.host.axis.time(model.pieces.start[rows]), side="right")
    return np.bincount(np.unique(np.stack((kind, step)), axis=1)[0])
