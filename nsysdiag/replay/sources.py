"""Calls that ask something outside of the program in each step, and return at once: the source is ahead, or drops.

```
as it was    [recv][waits for the encoder ........][recv][waits for the encoder ........]
fixed        [recv ......][recv ......][recv ......]     no faster than the source, which the recording does not show
```
"""

from __future__ import annotations

import re

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, coverage, places_among, union
from nsysdiag.causes import BLOCKED, PLACE
from nsysdiag.causes.input_output import IO_WAIT
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.events.calls import named_like
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import NamedRows
from nsysdiag.kernels.communication import steady_sends
from nsysdiag.replay.beside import SLEEPS, answered, as_often, counts_in_steps
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.pacing import LEAST_PART, MANY, MESSAGES, RETURN_NS, WAITED_NS
from nsysdiag.replay.work import LEAST_ERROR

SOME, FEWEST = 0.1, 3
"""Of the steps, and how many: waits in fewer come by chance, as those of a program that writes a log now and then."""

_DEVICES = re.compile(r"_*(accept4?|ioctl)")
"""Calls that ask a device, or other computers."""
_READS = re.compile(r"_*readv?(_chk)?")
"""Calls that read a file, or a pipe."""
_SENDS = re.compile(r"_*(send\w*|p?writev?(64)?|mq_\w*send|msgsnd)(_chk)?")
"""Calls that answer these: another thread that sends in each step may feed who asks, although no wait tells so."""


def source_may_limit(changes: Changes) -> bool:
    """Whether a source of which the pace is not known may hold back the changed steps. A thread still asks it,
    and did so in MANY of them. In most it did not wait: a call took less than LEAST_PART of a step. A source that a
    recorded thread feeds is known; waits in most steps are `Timed`. In a window without steps it is asked in nearly all
    parts of it. There a step is the time from one call to the next one of that kind."""
    model = changes.model
    pieces = model.pieces
    if not len(pieces):
        return False
    messages, unknown = model.in_calls(MESSAGES), _unknown(model)
    reads = unknown & (pieces.cause == PLACE[IO_WAIT.id])
    # Several threads may ask the same source in turns.
    kind = pieces.call + 1
    # Who was woken once by a recorded thread, or may be fed by one, knows the pace.
    waited = messages & ~reads & (model.call_of_piece < 0)
    fed = (messages & _others_send(model, least=MANY * _turns(model))) | np.isin(kind, kind[waited])
    asked = (messages | model.in_calls(_DEVICES)) & ~fed & reads
    asked = (asked | (_queued(model) & unknown)) & (changes.time >= 1)
    asleep = (pieces.cause == PLACE[SLEEP.id]) & model.in_calls(SLEEPS) & (changes.time >= 1)
    launching = np.isin(model.program.thread, model.step_threads)[pieces.owner]
    blocked = (pieces.cause == PLACE[BLOCKED]) & unknown & launching & (changes.time >= 1)
    # Who sleeps until a time that has come returns at once, or as soon as it is woken.
    length = pieces.length
    late = (asleep & (length < WAITED_NS)) | (blocked & (length < RETURN_NS))
    rows = np.flatnonzero(asked | late)
    soon = late | (length < LEAST_PART * _step_ns(model, kind, rows))
    if _ahead(model, kind, soon, rows):
        return True
    if _serves(model) and (changes.time[messages] >= 1).all():
        return True
    if _timer_posts(model, np.flatnonzero(launching & unknown)):
        return True
    if _looks_again(model, np.flatnonzero((pieces.cause == PLACE[SLEEP.id]) & model.in_calls(SLEEPS) & launching)):
        return True
    return _at_times(model, kind, np.flatnonzero(((asked | asleep) & launching) | blocked))


MAY_WAIT, UNSEEN_PART = 50_000, 0.05
"""Host time of which nothing is known may be a wait if it is so long, in ns, and that part of a step. Python code
between two calls mostly takes less. Round numbers."""
LEAST_UNSEEN = 0.02
"""All of it is at least this part of the replayed time: a source that is about as fast as the steps is waited for in
few of them. With a smaller one a lone stop, as of the system, would leave all savings in doubt. A round number."""
FEWEST_ALIKE, ALIKE, ERRORS = 8, 0.5, 2.0
"""How many times without evidence tell whether they are code: these differ by less than ALIKE of their mean. Of what
the time before them lasts longer, they make up for less than ALIKE, by so many standard errors. Round numbers."""


def unseen_may_limit(changes: Changes) -> bool:
    """Whether host time without any evidence may be waits for a source at a pace of its own. That may be a loader of
    data, requests, or a timer: the changed steps may then be as long as they were.

    ```
    thread   [launch][? .............][launch][? .............]      code, or a wait for the next batch
    faster   [launch][? .......][launch][? .......]                  code
             [l.][? .................][l.][? .................]      a wait
    ```
    """
    model, pieces, stretch = changes.model, changes.model.pieces, changes.model.stretch
    if not model.without_evidence.any():
        return False
    whole = stretch.end - stretch.begin
    own = model.without_evidence & np.isin(model.program.thread, model.step_threads)[pieces.owner]
    kept = np.where(own, pieces.length * _left_alone(changes.time), 0)
    # Of a window without steps it is not known how long one is.
    waits = kept >= max(MAY_WAIT, UNSEEN_PART * whole / stretch.count if stretch.stepwise else 0)
    if not waits.any() or model.ever(waits) < LEAST_UNSEEN * whole:
        return False
    return not _like_code(model, np.flatnonzero(waits))


def _like_code(model: Model, rows: IntArray) -> bool:
    """Whether these pieces, one in each step, last as long each time, whatever the time before them does. A wait for a
    source is shorter by as much as the time before it is longer. Samples cut such time where they happen to be. In a
    window without steps all may be one in each."""
    pieces, stretch = model.pieces, model.stretch
    rows = rows[np.argsort(pieces.start[rows])]
    begin, end = pieces.start[rows], pieces.end[rows]
    lane = begin // model.host.host.axis.stride
    whole = lane[0] == lane[-1] and not model.sampled.any()
    several = len(rows) > stretch.count + 1 and stretch.stepwise
    if not whole or several or len(rows) < FEWEST_ALIKE:
        return False
    length, before = (end - begin)[1:].astype(np.float64), (begin[1:] - end[:-1]).astype(np.float64)
    spread = float(before.std())
    if not spread or float(length.std()) > ALIKE * float(length.mean()):
        return False
    slope = float(np.cov(before, length, bias=True)[0, 1]) / spread**2
    return slope - ERRORS * float(length.std()) / spread / len(length) ** 0.5 > -ALIKE


def _left_alone(time: FloatArray) -> FloatArray:
    """The part of each piece of host time that is outside of what changes, by the factors of all pieces: exact if what
    is inside takes half its time, and too little if less of it is left."""
    return np.clip(2 * time - 1, 0.0, 1.0)


def _serves(model: Model) -> bool:
    """Whether a thread of the steps waited for a message that came from outside of the trace, in any step.

    ```
    requests      0      1   2  3     4    5      6     7
    server   [recv][step 0 ][step 1 ][step 2 ][step 3 ][step 4     it is behind, and asks for none
    faster   [recv][0 ].[1 ][2 ][3 ].[4 ][5 ].....[6 ].[7 ]        until it is faster than they come
    ```

    How many requests wait while it is behind is not known: they may come as slowly as it took them."""
    asked, host = model.beside.requests, model.host.host
    own = np.isin(asked.thread, model.step_threads)
    spans = model.on_axis(asked.thread[own], asked.start[own], asked.end[own])
    # A driver asks its device, and a library of MPI other ranks.
    return bool((coverage(union(host.api.spans, host.mpi.spans), spans) == 0).any())


def of_devices(model: Model) -> BoolArray:
    """Which pieces of host time wait for a device that may be ready at equal distances of time, as a screen is."""
    return model.in_calls(_DEVICES) & (model.pieces.cause == PLACE[IO_WAIT.id]) & _unknown(model)


@once
def takes_at_once(model: Model) -> bool:
    """Whether launching threads take in MANY steps what other threads may post, at once: none is known that does."""
    launching = np.isin(model.program.thread, model.step_threads)[model.pieces.owner]
    takes = np.append(answered(model.named.calls), False)[model.pieces.call] & (model.pieces.length < WAITED_NS)
    rows = np.flatnonzero(takes & launching & _unknown(model))
    return len(distinct_values(_step(model, rows))) >= MANY * _turns(model)


def _timer_posts(model: Model, rows: IntArray) -> bool:
    """Whether launching threads take what another thread may post at a pace of its own: in some steps the `rows` are
    waits for a thread that end at once, and one sleeps as often that the graph does not hold."""
    stretch, pieces = model.stretch, model.pieces
    least = max(SOME * stretch.count, FEWEST)
    if model.beside.naps < least:
        return False
    takes = np.append(answered(model.named.calls), False)[pieces.call[rows]] & (pieces.length[rows] < WAITED_NS)
    taken = _step(model, rows[takes])
    return len(distinct_values(taken) if stretch.stepwise else taken) >= least


def _looks_again(model: Model, rows: IntArray) -> bool:
    """Whether a launching thread sleeps in some steps more often than in others, or while another one follows the
    steps: it may look again and again whether there is something, which comes no sooner if it sleeps less. `rows` are
    the pieces in which one is asleep. In a window it is not known how often a step sleeps.

    ```
    producer  [decodes ........][decodes ........][decodes ........]
    solver    (sleeps)(sleeps)(sleeps)[step 0](sleeps)[step 1](sleeps)(sleeps)[step 2]
    ```
    """
    stretch, pieces, axis = model.stretch, model.pieces, model.host.host.axis
    rows = rows[pieces.length[rows] >= WAITED_NS]
    if not stretch.stepwise:
        return len(rows) >= FEWEST
    if model.asks_again[rows].any():
        return True
    found, thread = distinct(pieces.start[rows] // axis.stride)
    count = counts_in_steps(stretch, thread, axis.time(pieces.start[rows]), len(found))
    often = np.count_nonzero(count, axis=1) >= max(SOME * stretch.count, FEWEST)
    return bool((often & ~as_often(count)).any())


def _at_times(model: Model, kind: IntArray, rows: IntArray) -> bool:
    """Whether launching threads waited in some steps by the same call, and did not call it in most others: they may
    have been too late for what came. `rows` are the pieces in which one waits, or is asleep. In a window it is not
    known in which steps they did not call it: there the waits take some time in all."""
    pieces, stretch = model.pieces, model.stretch
    number = distinct(kind[rows])[1]
    waited = pieces.length[rows] >= WAITED_NS
    if not stretch.stepwise:
        much = np.bincount(number[waited], pieces.length[rows[waited]]) >= LEAST_ERROR * (stretch.end - stretch.begin)
        return bool((much & (np.bincount(number[waited]) >= FEWEST)).any())
    steps = _steps(model, number[waited], rows[waited])
    return bool(((steps >= max(SOME * stretch.count, FEWEST)) & (2 * steps < stretch.count)).any())


def _others_send(model: Model, beside: int = 0, *, least: float) -> BoolArray:
    """Whether other threads than that of each piece send something in so many steps at `least`, each in some of them;
    `beside` is how much is sent by threads that the graph does not hold. What ended a known wait was for that one."""
    lane, none = model.pieces.start // model.host.host.axis.stride, np.zeros(1, dtype=np.int64)
    woken = model.threads.woken
    taken = union(model.on_axis(woken.waker, woken.at, woken.at + 1))
    sending = np.flatnonzero(model.in_calls(_SENDS) & (coverage(taken, model.pieces.spans) == 0))
    sender, number = distinct(lane[sending])
    steps = np.append(_steps(model, number, sending), none) if len(sending) else none
    return beside + steps.sum() - steps[places_among(sender, lane)] >= least


def answers(model: Model) -> BoolArray:
    """Which pieces of host time are waits of which the end is not known, and may depend on what the program does: for a
    thread, or for a message if others send some. What a source outside of the program has comes when it comes."""
    found: BoolArray = model.pieces.cause != PLACE[IO_WAIT.id]
    return found | _others_send(model, model.beside.messages, least=MANY * model.stretch.count)


def of_unknown_sources(model: Model) -> BoolArray:
    """Which pieces of host time wait for something that is not in the trace: for messages; or in a call that may read a
    file, if the same thread sends something in MANY steps, to which that may be the answer."""
    asks = model.in_calls(_READS) & _itself_sends(model)
    return (model.in_calls(MESSAGES) | asks) & _unknown(model) & (model.pieces.cause == PLACE[IO_WAIT.id])


def asks_others(model: Model) -> BoolArray:
    """Which pieces of host time are in calls that ask others, or answer them, and read no file."""
    return model.in_calls(MESSAGES) | model.in_calls(_DEVICES) | model.in_calls(_SENDS)


def _itself_sends(model: Model) -> BoolArray:
    lane = model.pieces.start // model.host.host.axis.stride
    sending = np.flatnonzero(model.in_calls(_SENDS))
    sender, number = distinct(lane[sending])
    return np.isin(lane, sender[_steps(model, number, sending) >= MANY * model.stretch.count] if len(sending) else [])


@once
def _unknown(model: Model) -> BoolArray:
    """Which pieces no recorded thread ended. Within a CUDA call it is the driver that asks its device."""
    driver = (model.call_of_piece >= 0) | (coverage(union(model.host.host.api.spans), model.pieces.spans) > 0)
    return ~driver & ~model.in_known_waits


def _queued(model: Model) -> BoolArray:
    """Which pieces may take something out of a pipe that threads fill which the graph does not hold, as none waited for
    them: they send something in MANY steps."""
    sent = model.beside.messages >= MANY * _turns(model)
    return model.in_calls(_READS) & (model.pieces.cause == PLACE[IO_WAIT.id]) & sent


PARTS = 8
"""Of a window without steps: what is done in nearly all parts of it is done again and again. With more parts a window
of few steps has some without one. With fewer, what is done at the beginning and at the end counts as well."""


def _ahead(model: Model, kind: IntArray, soon: BoolArray, rows: IntArray) -> bool:
    """Whether threads asked in MANY steps by the same call, of the same `kind`, and got what they asked for `soon` in
    most of these; `rows` are the pieces in which one asks."""
    number, steps = distinct(kind[rows])[1], _turns(model)
    asking, step = _steps(model, number, rows), _step(model, rows)
    at_once = _steps(model, number[soon[rows]], rows[soon[rows]])
    at_once = np.append(at_once, np.zeros(len(asking) - len(at_once), dtype=np.int64))
    first, last = np.full(len(asking), steps), np.zeros(len(asking), dtype=np.int64)
    np.minimum.at(first, number, step)
    np.maximum.at(last, number, step)
    # Threads that are ahead have asked before the first steps for what these need.
    each = (asking >= MANY * (last - first + 1)) & (2 * asking >= steps)
    if not model.stretch.stepwise:  # several steps are in each part
        asking, at_once = (np.bincount(number, among) for among in (None, soon[rows]))
    return bool((each & (2 * at_once > asking)).any())


def _steps(model: Model, kind: IntArray, rows: IntArray) -> IntArray:
    """In how many steps each kind of pieces is, or in how many parts of a window."""
    return np.bincount(np.unique(np.stack((kind, _step(model, rows))), axis=1)[0])


def _step(model: Model, rows: IntArray) -> IntArray:
    """The step in which each of these pieces begins, or the part of a window, counted from 1."""
    time = model.host.host.axis.time(model.pieces.start[rows])
    if model.stretch.stepwise:
        return model.stretch.step(time) + 1
    begin, end = model.stretch.begin, model.stretch.end
    return np.clip((time - begin) * PARTS // (end - begin), -1, PARTS - 1) + 1


def _turns(model: Model) -> int:
    """How many steps there are, or parts of a window without steps."""
    return model.stretch.count if model.stretch.stepwise else PARTS


def _step_ns(model: Model, kind: IntArray, rows: IntArray) -> FloatArray | float:
    """How long a step is, in ns. In a window that is for each piece the mean distance of those among `rows` that are
    of the same `kind`."""
    whole = model.stretch.end - model.stretch.begin
    if model.stretch.stepwise:
        return whole / model.stretch.count
    return whole / np.maximum(np.bincount(kind[rows], minlength=int(kind.max()) + 1), 1)[kind]


# Calls of MPI that wait for one other rank: the trace does not say which call of that rank they are for.
#
# ```
# rank 0   [MPI_Sendrecv ====)      ends sooner, or as it did, once rank 1 is faster
# rank 1   [computes    ][===)
# ```

_EXCHANGES = re.compile(r"MPI_(Sendrecv\w*|[BRS]?send|Send|M?Recv|M?Probe|Wait(all|any|some)?)", re.IGNORECASE)


def without_waits(changes: Changes) -> Changes | None:
    """The same if such calls of a rank take no time, except for those that are changed themselves. Messages that
    always take the same time stay, too. A peer that is always late makes even the shortest one wait. None if they
    hardly take any."""
    model, calls = changes.model, exchanging(changes.model)
    axis, stretch = model.host.host.axis, model.stretch
    begun = axis.time(calls.spans.start)
    calls = calls.take(~steady_sends(calls, axis, (begun >= stretch.begin) & (begun < stretch.end)))
    if not len(calls) or not len(model.pieces):
        return None
    waits = (model.row_of_piece(calls.spans) >= 0) & (changes.time >= 1)
    waited = int(model.pieces.length[waits].sum())
    if waited < LEAST_ERROR * (model.stretch.end - model.stretch.begin):
        return None
    return replace(changes, time=np.where(waits, 0.0, changes.time))


def most_sooner(changes: Changes) -> float:
    """By how much the changes make a peer sooner in a step, in ns: what they take away from the process and the device
    that they take most from."""
    model, pieces = changes.model, changes.model.pieces
    axis = model.host.host.axis
    _, process = distinct(process_of(axis.threads[pieces.start // axis.stride].astype(np.int64)))
    host = np.bincount(process, pieces.length * (1 - changes.time)).max(initial=0)
    unseen = (model.unseen * (1 - changes.unseen)).sum()
    work = np.bincount(model.work.device, model.length - changes.length).max(initial=0)
    return float(host + unseen + work) / max(model.stretch.count, 1)


def in_a_row(model: Model) -> int:
    """How many ranks may wait for each other in a row: all others of the trace that make such calls, at least one."""
    calls, axis = exchanging(model), model.host.host.axis
    return max(len(distinct_values(process_of(axis.threads[calls.spans.start // axis.stride].astype(np.int64)))) - 1, 1)


def takes_out_waits(changes: Changes) -> bool:
    """Whether any wait is gone, or any order of work."""
    kept = (changes.held, changes.others, changes.full, changes.woken, ~changes.dropped)
    return not all(each.all() for each in kept)


def exchanging(model: Model) -> NamedRows:
    """The outermost calls that wait for one rank of which it is not known what it does."""
    lane, met = model.host.host.mpi, model.threads.mpi
    named = np.append(named_like(lane.names, _EXCHANGES), False)
    rows = np.flatnonzero(named[lane.name] & lane.outermost)
    calls, left = lane.take(rows), met.take(met.leaves)
    known = model.on_axis_of(left)
    return calls.take(~np.isin(calls.spans.start, known.start))
