"""Waits for another thread: locks, condition variables, semaphores."""

from __future__ import annotations

import re

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, FrameworkAdvice, Lookalike, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of, named
from nsysdiag.causes.gil import gil_waits

CALLS = re.compile(
    r"_*pthread_(mutex_(lock|timedlock|clocklock)|rwlock_(timed|clock)?(rd|wr)lock|cond_\w*wait\w*|barrier_wait|spin_lock)"
    r"|_*sem_(timed|clock)?wait(_np)?|sem(timed)?op|futex\w*|sched_yield|pthread_yield|flockfile|flock|lockf\w*|\w+\.(acquire|get|put|wait|join)"
)


INTERPRETER_LOCK = EvidenceLabel("GIL")
"""The label of waits for the lock of CPython's interpreter."""


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
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
            "Hold locks for a shorter time: prepare work outside them, use one lock per queue, and hold none while "
            "launching.",
            "An empty queue means that its producer is too slow: use more workers, or prepare work ahead.",
        ),
        pytorch=FrameworkAdvice(
            (
                "Find who holds the lock or fills the queue: that thread is the root.",
                "Python: the GIL shows as pthread_cond_timedwait of about 5 ms; move work to processes, or release the "
                "GIL.",
                "An empty input queue means that the workers are too slow: use more workers, prefetching, or cheaper "
                "decoding.",
            ),
            source="gil",
        ),
    ),
    picture="""
device  [==A==)....................[==next==)
thread         [pthread_cond_wait][launch]
""",
    bottleneck="host",
    shade=0,
    sources=("nsight_osrt", "gil"),
    rows=(EvidenceRows.OS_CALL,),
    confirm=(
        "In the row of OS calls of the launching thread, pthread_mutex_lock, pthread_cond_wait, sem_wait or futex "
        "covers the gap. The report names the thread that ended the wait, and what it did meanwhile.",
        "Show both threads in Nsight Systems: the call that wakes the launching thread ends where the wait ends.",
    ),
    confused_with=(
        Lookalike("data_loading", "The same wait; there, the other thread is a data loading worker."),
        Lookalike("blocked", "There, the call is not traced, as for CPython's timed waits."),
        Lookalike("off_cpu", "There, the thread was ready to run and had no CPU."),
        Lookalike("sync", "The other thread may be in a synchronization, which is then the root cause."),
    ),
    variants=(
        Variant(
            "gil",
            "the GIL",
            "move the other threads' Python work to processes",
            Advice(
                plain=(
                    "Another Python thread held the GIL: move its work to processes, to code that releases the GIL, or "
                    "to a free-threaded build.",
                    "A shorter sys.setswitchinterval() lets the launching thread in sooner.",
                ),
                pytorch=FrameworkAdvice(
                    (
                        "Another Python thread held the GIL: move its work to processes (DataLoader(num_workers > 0) "
                        "instead of threads) or to code that releases it. A free-threaded build has no GIL.",
                        "A shorter sys.setswitchinterval() lets the launching thread in sooner.",
                    ),
                    source="gil",
                ),
            ),
            labels=(INTERPRETER_LOCK,),
        ),
        Variant(
            "timed",
            "a timed wait",
            "find the thread that should signal; in Python, release the GIL",
            Advice(
                (
                    "The thread waits for a signal or a timeout: find the thread that should signal, and signal "
                    "instead of polling.",
                    "In CPython, pthread_cond_timedwait of about 5 ms is the wait for the GIL: move the other threads' "
                    "Python work to processes, or release the GIL.",
                )
            ),
            call=matching(r"cond_(timed|clock)wait"),
        ),
        Variant("other", "", "find the thread that holds the lock or fills the queue"),
    ),
    host=evidence,
    follows_wakeups=True,
)
