"""The files that threads were in, which several devices may ask for at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np

from nsysdiag import open_trace
from nsysdiag.trace.trace import Trace
from nsysdiag.typed import plain
from nsysdiag.wakeups.wake_chain import Files
from tests.builder import TraceBuilder, global_tid

READER = (4242, 4300)


def test_a_thread_that_comes_second_waits_for_what_the_first_reads(tmp_path: Path, monkeypatch: Any) -> None:
    trace = TraceBuilder(schema="3.28.1").kernel(10, 20, launch=(1, 2))
    trace.row(
        "OSRT_FILE_ACCESS_EVENTS",
        {"fileAccessId": 1, "startedAt": 100, "endedAt": 200, "threadId": global_tid(READER), "eventType": 1},
    )
    trace.row("OSRT_FILE_ACCESS_DESCRIPTORS", {"fileAccessId": 1, "filePath": "/data/train.bin"})
    began, both, read = Event(), Barrier(2), Trace.read

    def slowly(self: Trace, table: str, *names: str) -> Any:
        began.set()
        read_on.wait(10)
        return read(self, table, *names)

    read_on = Event()
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened:
        files = Files(opened)
        monkeypatch.setattr(Trace, "read", slowly)

        def ask() -> str:
            both.wait(10)
            return plain(files.read_by(np.array([global_tid(READER)]), np.array([120]), np.array([180])))

        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(ask) for _ in range(2)]
            assert began.wait(10)
            read_on.set()
            assert [each.result() for each in asked] == [" of /data/train.bin"] * 2
