"""Which files a thread read: rows of OSRT_FILE_ACCESS_EVENTS, which newer captures hold."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.identity import tid_of
from nsysdiag.timeline.intervals import IntArray
from nsysdiag.trace.trace import Trace

MOST = 2


class Files:
    """Paths by thread and time. Nothing is read before it is asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._loaded = False
        self._tid = self._start = self._end = self._file = self._reach = np.zeros(0, dtype=np.int64)
        self._paths: dict[int, str] = {}

    def read_by(self, thread: IntArray, start: IntArray, end: IntArray) -> str:
        """The files that threads were in during stretches [start, end), longest first: ` of data.bin, labels.bin`;
        empty where the trace does not tell."""
        if not self._loaded:
            self._load()
        if len(self._tid) == 0:
            return ""
        found: dict[str, int] = {}
        for who, low, high in zip(tid_of(thread).tolist(), start.tolist(), end.tolist(), strict=True):
            first, behind = np.searchsorted(self._tid, (who, who + 1)).tolist()
            behind = first + int(np.searchsorted(self._start[first:behind], high))
            first += int(np.searchsorted(self._reach[first:behind], low, side="right"))
            rows = np.arange(first, behind)
            overlap = np.minimum(self._end[rows], high) - np.maximum(self._start[rows], low)
            for row, ns in zip(rows[overlap > 0].tolist(), overlap[overlap > 0].tolist(), strict=True):
                path = self._paths.get(int(self._file[row]), "")
                found[path] = found.get(path, 0) + ns
        ranked = sorted(((ns, path) for path, ns in found.items() if path), reverse=True)[:MOST]
        return " of " + ", ".join(path for _, path in ranked) if ranked else ""

    def _load(self) -> None:
        self._loaded = True
        rows = self._trace.read("OSRT_FILE_ACCESS_EVENTS", "fileAccessId", "startedAt", "endedAt", "threadId")
        if len(rows) == 0:
            return
        known = self._trace.read("OSRT_FILE_ACCESS_DESCRIPTORS", "fileAccessId", "filePath")
        # The thread may be written as the system's number or as a globalTid: both end in it.
        order = np.lexsort((rows["startedAt"], tid_of(rows["threadId"])))
        self._tid, self._file = tid_of(rows["threadId"])[order], rows["fileAccessId"][order]
        self._start, self._end = rows["startedAt"][order], rows["endedAt"][order]
        # The latest end so far of each thread: what ends before a stretch is skipped without a look.
        self._reach = self._end.copy()
        for mine in np.split(np.arange(len(order)), np.flatnonzero(np.diff(self._tid)) + 1):
            self._reach[mine] = np.maximum.accumulate(self._end[mine])
        paths = zip(known["fileAccessId"].tolist(), known.text("filePath").texts(), strict=True)
        self._paths = {number: path for number, path in paths if path}
