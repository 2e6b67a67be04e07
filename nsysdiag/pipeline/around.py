"""What the host did before the first phase of a job and after its last one."""

from __future__ import annotations

import numpy as np

from nsysdiag.account.outside import Outside, evidence_of_start
from nsysdiag.fields import Sentence
from nsysdiag.findings.phase_work import work_outside
from nsysdiag.phases.facts import told
from nsysdiag.phases.phases import JobPhases
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading

NOTABLE = 0.1
"""Share of what was recorded: what the host did in less time is not said."""


def around_phases(found: JobPhases, reading: Reading, host: HostReading) -> tuple[Sentence, Sentence]:
    """The calls and host code of the thread that launched most, in words; empty for a short time, and where nothing is
    known of it.

    ```
    recorded  [import torch ....][start-up][steady ....][getc ..........................]
    said       ^ host code 1.2 s                         ^ getc 32.9 s
    ```
    """
    launch = reading.activity.launch[reading.activity.launch >= 0]
    if not len(launch) or not found.phases:
        return "", ""
    threads, count = np.unique(reading.activity.api_calls.rows.thread[launch], return_counts=True)
    thread, (first, last) = int(threads[count.argmax()]), host.recorded_span
    begin, end, least = found.phases[0].start, found.phases[-1].end, NOTABLE * (last - first)
    if max(begin - first, last - end) < least:
        return "", ""
    begun, ended = _lived(thread, reading, host)
    before, behind = (max(first, begun), begin), (end, min(ended, last))
    return _did(thread, before, least, reading, host), _did(thread, behind, least, reading, host)


def _lived(thread: int, reading: Reading, host: HostReading) -> tuple[int, int]:
    """When the first event of a thread begins and the last one ends: of other time nothing is known of it."""
    tables, calls = host.tables, reading.activity.api_calls.rows
    spans = [(each.start, each.end, each.thread) for each in (calls, tables.os_calls, reading.ranges.rows)]
    spans += [(each.time, each.time, each.thread) for each in (tables.switches, tables.samples)]
    mine = [(start[own], end[own]) for start, end, of in spans if (own := of == thread).any()]
    return min(int(start.min()) for start, _ in mine), max(int(end.max()) for _, end in mine)


def _did(thread: int, span: tuple[int, int], least: float, reading: Reading, host: HostReading) -> Sentence:
    if span[1] - span[0] < least:
        return ""
    evidence = evidence_of_start([Outside(thread, *span)], host.tables, reading.activity, host.facts)
    return told(work_outside(evidence, thread, span, host.call_chains))
