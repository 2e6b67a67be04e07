"""Waits for other threads, for the interpreter lock among them, and waits that the program asked for."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of, named
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import process_of

# Waits for CPython's global interpreter lock, as distinct from other waits.

TIMED_WAIT = re.compile(r"_*pthread_cond_(timed|clock)wait")
SWITCH_INTERVAL_NS = (4_950_000, 5_300_000)
"""How long a wait for the lock takes that ends by its timer: CPython's default interval is 5 ms, and such waits took
5.0 to 5.2 ms. A wider range takes other timers for the lock. Of a program that sets another interval none are found."""
LATE_NS = 20_000_000
"""The longest wait that counts as one with a late timer. A longer one takes the program's own waits for the lock, a
shorter one misses late timers."""
AGAIN_NS = 100_000
"""The longest pause until the thread asks for the lock again, as CPython does at once if a wait timed out. A longer one
joins waits with work in between."""
LEAST = 3
"""Waits of a switch interval that a process has at least: fewer may be other waits that happen to be as long."""
RATHER = 4
"""Waits of a switch interval that a thread has for each longer one, at least: else the longer ones are not its late
timers."""


def gil_waits(host: HostActivity) -> BoolArray:
    """True for each row of `host.os_calls` that waits for the interpreter lock.

    A thread that needs the GIL waits for the switch interval of 5 ms, requests its release, and waits again. So the
    waits time out after 5.0 to 5.2 ms, except the last, which the holder ends by a signal.

    ```
    thread   [timedwait 5.1 ms ][timedwait 5.1 ms ][0.3]     all three
    holder   compute .............................. signal
    ```

    A process has such waits if at least three are that long, and no more are longer. If none is longer, the shorter
    ones count too. A longer one counts if the thread waits again at once, and at most one in five of its long waits is
    longer: its timer was late. If no long wait is followed by another at once, they are timers of the program's own.
    """
    lane = host.os_calls
    rows = np.flatnonzero(named(lane, TIMED_WAIT))
    result = np.zeros(len(lane), dtype=np.bool_)
    if len(rows) == 0:
        return result
    spans = lane.spans[rows]
    waiting = spans.start // host.axis.stride
    length = spans.end - spans.start
    full = (length >= SWITCH_INTERVAL_NS[0]) & (length <= SWITCH_INTERVAL_NS[1])
    _, process = distinct(process_of(host.axis.threads))
    process = process[waiting]
    longer = np.bincount(process, length > SWITCH_INTERVAL_NS[1])
    often = np.bincount(process, full) >= np.maximum(longer, LEAST)
    # All but the last: does the same thread's next wait follow at once?
    again = (spans.start[1:] - spans.end[:-1] <= AGAIN_NS) & (waiting[1:] == waiting[:-1])
    late = (length > SWITCH_INTERVAL_NS[1]) & (length <= LATE_NS) & np.append(again, False)
    _, thread = distinct(waiting)
    seldom = np.bincount(thread, full) >= RATHER * np.bincount(thread, length > SWITCH_INTERVAL_NS[1])
    late &= seldom[thread]
    follows = np.append(False, again & (full | late)[:-1])
    # Who does not get the lock in time waits again at once; a timer of the program's own does not.
    often &= np.bincount(process, full & np.append(again, False)) > 0
    result[rows] = often[process] & (full | late | follows | (longer == 0)[process])
    return result


LOCK_WAIT_CALLS = re.compile(
    r"_*pthread_(mutex_(lock|timedlock|clocklock)|rwlock_(timed|clock)?(rd|wr)lock|cond_\w*wait\w*|barrier_wait|spin_lock)"
    r"|_*sem_(timed|clock)?wait(_np)?|sem(timed)?op|futex\w*|sched_yield|pthread_yield|flockfile|flock|lockf\w*|\w+\.(acquire|get|put|wait|join)"
)


INTERPRETER_LOCK = EvidenceLabel("GIL")
"""The label of waits for the lock of CPython's interpreter."""


def lock_wait_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """OS calls that wait for another thread; signalling and unlocking are not waits."""
    calls = evidence.host.os_calls
    waits, interpreter = named(calls, LOCK_WAIT_CALLS), gil_waits(evidence.host)
    return [layer_of(calls.take(interpreter), INTERPRETER_LOCK), layer_of(calls.take(waits & ~interpreter))]


LOCK_WAIT = Cause(
    id="lock_wait",
    title="Waiting for another thread",
    meaning="The launching thread waited for a lock, a condition variable, a semaphore or a barrier: another thread had to act first.",
    side="host",
    tables=("OSRT_API",),
    bottleneck="host",
    shade=0,
    rows=(EvidenceRows.OS_CALL,),
    variants=(
        Variant("gil", "the GIL", "move the other threads' Python work to processes", labels=(INTERPRETER_LOCK,)),
        Variant(
            "timed",
            "a timed wait",
            "find the thread that should signal; in Python, release the GIL",
            call=matching("cond_(timed|clock)wait"),
        ),
        Variant("other", "", "find the thread that holds the lock or fills the queue"),
    ),
    host=lock_wait_evidence,
    follows_wakeups=True,
)


SLEEP_CALLS = re.compile(
    r"_*((clock_)?nanosleep|u?sleep|pause|(rt_)?sig(suspend|wait|timedwait|waitinfo)|alarm"
    r"|v?fork|clone3?|posix_spawnp?|exec[vl]p?e?|fexecve|system|p(open|close)|daemon"
    r"|pthread_(create|join|tryjoin_np|timedjoin_np|clockjoin_np|kill|cancel)|thrd_(create|join|sleep)|wait[34]?|waitp?id)"
)
SLEEPS = re.compile("sleep")
"""The calls among them that wait for a time, not for a process or thread."""


def sleep_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """OS calls that sleep, or that start or await a process or thread."""
    return [layer_of(evidence.os_calls(SLEEP_CALLS))]


SLEEP = Cause(
    id="sleep",
    title="Sleep, or waiting for a process or thread",
    meaning="The launching thread slept, or created or awaited a process or thread.",
    side="host",
    tables=("OSRT_API",),
    bottleneck="host",
    shade=1,
    rows=(EvidenceRows.OS_CALL,),
    variants=(
        Variant(
            "processes",
            "processes or threads are created and end",
            "keep them alive: a pool of threads or processes",
            call=matching("fork|clone|spawn|exec|pthread_|thrd_|wait|popen|pclose|system"),
        ),
        Variant("sleeps", "the thread sleeps", "remove the sleep", call=matching("sleep|pause|alarm")),
        Variant("other", "", "wait on a condition instead"),
    ),
    host=sleep_evidence,
    follows_wakeups=True,
)
