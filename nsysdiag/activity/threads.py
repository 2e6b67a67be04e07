"""Names of threads (ThreadNames)."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.identity import IntArray
from nsysdiag.trace.trace import Trace


def thread_names(trace: Trace, threads: IntArray) -> dict[int, str]:
    """The name of each of `threads` (globalTids) that has one; of several names the first in the alphabet."""
    columns = trace.read("ThreadNames", "nameId", "globalTid")
    rows = np.flatnonzero(np.isin(columns["globalTid"], threads))
    named = zip(columns["globalTid"][rows].tolist(), trace.strings.texts(columns["nameId"][rows]), strict=True)
    return dict(sorted(named, reverse=True))
