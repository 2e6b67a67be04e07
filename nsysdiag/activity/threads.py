"""Names of threads and processes (ThreadNames, PROCESSES)."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.timeline.intervals import IntArray
from nsysdiag.trace.trace import Trace

_PROFILER = re.compile(r"\[NSys.*|.*CommsProcess.*|nsys-\w*|CUPTI.*", re.IGNORECASE)


def is_profiler(name: str) -> bool:
    """Whether a thread of this name is the profiler's own."""
    return _PROFILER.fullmatch(name) is not None


def thread_names(trace: Trace) -> dict[int, str]:
    """The name of each thread (globalTid) that has one; of several names the first in the alphabet."""
    columns = trace.read("ThreadNames", "nameId", "globalTid")
    named = zip(columns["globalTid"].tolist(), trace.strings.texts(columns["nameId"]), strict=True)
    return dict(sorted(named, reverse=True))


def profiler_threads(trace: Trace) -> IntArray:
    """The profiler's own threads inside the profiled processes (globalTids): nothing of the program waits for them."""
    columns = trace.read("ThreadNames", "nameId", "globalTid")
    names = trace.strings.texts(columns["nameId"])
    own = np.array([is_profiler(name) for name in names], dtype=np.bool_)
    return np.unique(columns["globalTid"][own])


def process_names(trace: Trace) -> dict[int, str]:
    """The program of each process (globalPid) that has a name; of several names the first in the alphabet."""
    columns = trace.read("PROCESSES", "globalPid", "name")
    named = zip(columns["globalPid"].tolist(), columns.text("name").texts(), strict=True)
    return dict(sorted(((process, name) for process, name in named if name), reverse=True))
