"""Waits for another thread: locks, condition variables, semaphores."""

from __future__ import annotations

import re

from nsysdiag.causes.advice import Advice, Words
from nsysdiag.causes.cause import Cause, Lookalike, Rows
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of, named
from nsysdiag.causes.gil import gil_waits
from nsysdiag.causes.variant import Variant, matching

CALLS = re.compile(
    r"_*pthread_(mutex_(lock|timedlock|clocklock)|rwlock_(timed|clock)?(rd|wr)lock|cond_\w*wait\w*|barrier_wait|spin_lock)"
    r"|_*sem_(timed|clock)?wait(_np)?|sem(timed)?op|futex\w*|sched_yield|pthread_yield|flockfile|flock|lockf\w*"
)


INTERPRETER_LOCK = "GIL"
"""The label of waits for the lock of CPython's interpreter."""


def evidence(evidence: HostEvidence) -> list[Layer]:
    """OS calls that wait for another thread; signalling and unlocking are not waits."""
    calls = evidence.host.os_calls
    waits, interpreter = named(calls, CALLS), gil_waits(evidence.host)
    return [layer_of(calls.take(interpreter), INTERPRETER_LOCK), layer_of(calls.take(waits & ~interpreter))]


CAUSE = Cause(
    id="lock_wait",
    title="Waiting for another thread",
    meaning="The launching thread waited for a lock, a condition variable, a semaphore or a barrier: another thread had to act first.",
    side="host",
    tables=("OSRT_API",),
    advice=Advice(
        plain=(
            "Find who holds the lock or fills the queue: that thread is the root.",
            "Hold locks for less: prepare outside of them, one lock for each queue; launch without holding one.",
            "A queue that is empty means that whoever fills it is too slow: more workers, work done ahead.",
        ),
        pytorch=Words(
            (
                "Find who holds the lock or fills the queue: that thread is the root.",
                "Python: the GIL shows as pthread_cond_timedwait of about 5 ms; move work to processes, or free the GIL.",
                "An input queue that is empty means that the workers are too slow: more workers, prefetching, cheaper decoding.",
            ),
            source="gil",
        ),
    ),
    color="#c32d3e",
    picture="""
device  [==A==)....................[==next==)
thread         [pthread_cond_wait][launch]
""",
    family="host",
    sources=("nsight_osrt", "gil"),
    rows=(Rows.OS_CALL,),
    confirm=(
        "In the row of OS calls of the launching thread, pthread_mutex_lock, pthread_cond_wait, sem_wait or futex covers the gap. The report says who ended the wait, and what that thread did meanwhile.",
        "Show that thread beside the launching one in Nsight Systems: its call that wakes ends where the wait ends.",
    ),
    confused_with=(
        Lookalike("data_loading", "The same wait, where the other thread is a loading worker."),
        Lookalike("blocked", "The wait of a call that is not traced, as CPython's waits with a time limit."),
        Lookalike("off_cpu", "There the thread could run and had no CPU."),
        Lookalike("sync", "The other thread may be in a synchronization: then the root is that."),
    ),
    variants=(
        Variant(
            "gil",
            "the GIL",
            "move the other threads' Python work to processes",
            Advice(
                plain=(
                    "Another Python thread held the interpreter: move its work to processes, to code that frees the GIL, or to "
                    "a free-threaded build.",
                    "A shorter sys.setswitchinterval() lets the launching thread in sooner.",
                ),
                pytorch=Words(
                    (
                        "Another Python thread held the interpreter: move its work to processes (DataLoader(num_workers > 0) "
                        "instead of threads), to code that frees the GIL, or to a free-threaded build.",
                        "A shorter sys.setswitchinterval() lets the launching thread in sooner.",
                    ),
                    source="gil",
                ),
            ),
            label=matching(r"GIL"),
        ),
        Variant(
            "timed",
            "a wait with a time limit",
            "find who should signal; in Python, free the GIL",
            Advice(
                (
                    "The thread waits for a signal, or until its time is over: find who should signal, and signal instead of "
                    "letting it poll.",
                    "In CPython, pthread_cond_timedwait of about 5 ms is the wait for the GIL: move the other threads' Python "
                    "work to processes, or free the GIL.",
                )
            ),
            call=matching(r"cond_(timed|clock)wait"),
        ),
        Variant("other", "", "find who holds the lock or fills the queue"),
    ),
    host=evidence,
    follows_wakeups=True,
)
