"""Sleep: the program asked to wait, or waited for a process or thread to start or end."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, FrameworkAdvice, Lookalike, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of

CALLS = re.compile(
    r"_*((clock_)?nanosleep|u?sleep|pause|(rt_)?sig(suspend|wait|timedwait|waitinfo)|alarm"
    r"|v?fork|clone3?|posix_spawnp?|exec[vl]p?e?|fexecve|system|p(open|close)|daemon"
    r"|pthread_(create|join|tryjoin_np|timedjoin_np|clockjoin_np|kill|cancel)|thrd_(create|join|sleep)|wait[34]?|waitp?id)"
)
SLEEPS = re.compile("sleep")
"""The calls among them that wait for a time, not for a process or thread."""


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """OS calls that sleep, or that start or await a process or thread."""
    return [layer_of(evidence.os_calls(CALLS))]


CAUSE = Cause(
    id="sleep",
    title="Sleep, or waiting for a process or thread",
    meaning="The launching thread slept, or created or awaited a process or thread.",
    side="host",
    tables=("OSRT_API",),
    advice=Advice(
        plain=(
            "Remove the sleep or the polling interval; wait on a condition instead.",
            "Keep worker processes and threads alive: a pool instead of one for each task.",
        ),
        pytorch=FrameworkAdvice(
            (
                "Remove the sleep or the polling interval; wait on a condition instead.",
                "Keep worker processes alive: DataLoader(persistent_workers=True).",
            ),
            source="data_loader",
        ),
    ),
    picture="""
device  [==A==)..............[==next==)
thread         [nanosleep][launch]
""",
    bottleneck="host",
    shade=1,
    sources=("nsight_osrt",),
    rows=(EvidenceRows.OS_CALL,),
    confirm=(
        "In the row of OS calls, nanosleep, usleep, waitpid, fork or pthread_join covers the gap. A polling loop shows many short sleeps of equal length.",
    ),
    confused_with=(
        Lookalike("lock_wait", "A timed wait that another thread ends earlier."),
        Lookalike("blocked", "A sleep in a call that is not traced."),
    ),
    variants=(
        Variant(
            "processes",
            "processes or threads are created and end",
            "keep them alive: a pool of threads or processes",
            Advice(
                plain=("Keep worker processes and threads alive: a pool instead of one for each task.",),
                pytorch=FrameworkAdvice(
                    ("Keep worker processes and threads alive: DataLoader(persistent_workers=True), a thread pool.",),
                    source="data_loader",
                    fix="keep them alive: persistent_workers=True",
                ),
            ),
            call=matching(r"fork|clone|spawn|exec|pthread_|thrd_|wait|popen|pclose|system"),
        ),
        Variant("sleeps", "the thread sleeps", "remove the sleep", call=matching(r"sleep|pause|alarm")),
        Variant("other", "", "wait on a condition instead"),
    ),
    host=evidence,
    follows_wakeups=True,
)
