"""Models to try replays on: operations written out, and those of simulated programs and of traces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from nsysdiag import Settings
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.calls import CallRows
from nsysdiag.events.event_waits import StreamWaits
from nsysdiag.events.rows import Rows
from nsysdiag.pipeline.changes import Replayed, replayed
from nsysdiag.replay.device_waits import Behind, DeviceWaits, DeviceWaitTable, Finished
from nsysdiag.replay.meetings import MpiCalls
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import ThreadActions
from nsysdiag.replay.pacing import Timed
from nsysdiag.replay.wakes import Wakes
from nsysdiag.replay.work import Class, Work
from nsysdiag.trace.trace import open_trace
from tests.replay.pairs import PAIRS
from tests.replay.pairs.pair import Build, simulated
from tests.simulator import EVERYTHING, Capture

Row = tuple[int, int, int, int, int, int]
"""An operation: device, start, length, stream, class, and how long before its start it was launched; -1 for no launch.
Its stream is one of its own device."""
STREAMS = 2
SETTINGS = Settings(timeline=False)
VARIED = (
    "sync after each kernel of 60 µs",
    "read-back after each step",
    "upload and download with a sync in each step",
    "host code behind a full queue",
    "worker that decodes",
    "kernels halved in both streams",
    "kernel of two streams halved, events not recorded",
    "barriers of the legacy default stream",
    "graph in place of slow launches",
    "rank of eight that reads files, like the median",
)
"""Names of pairs whose programs have edges of all kinds together."""


def work_of(rows: Sequence[Row]) -> Work:
    """Operations in the order of `Work`; each that is launched has a call of its own, in the order of the rows."""
    table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 6)
    device, start, length, stream, kind, lead = table.T
    launched = lead >= 0
    return Work(
        row=np.arange(len(table)),
        start=start,
        end=start + length,
        launch=np.where(launched, np.arange(len(table)), -1),
        issued=np.where(launched, start - lead, start),
        stream=device * STREAMS + stream,
        device=device,
        kind=kind,
    )


def works(most: int = 12) -> st.SearchStrategy[Work]:
    """Few operations in little time: many start or end at once, overlap in a stream, or take no time."""
    row = st.tuples(
        st.integers(0, 1),
        st.integers(0, 30),
        st.integers(0, 8),
        st.integers(0, STREAMS - 1),
        st.sampled_from([int(each) for each in Class]),
        st.integers(-1, 6),
    )
    return st.lists(row, max_size=most).map(work_of)


class OneProcess(Rows, frozen=True):
    """What the replay reads of Operations."""

    process: IntArray
    context: IntArray


def activity_of(work: Work, devices: int = 2, **others: object) -> SimpleNamespace:
    """What the replay reads of a DeviceActivity: all operations are of one process and context."""
    same = np.zeros(len(work), dtype=np.int64)
    return SimpleNamespace(
        operations=OneProcess(same, same), devices=[None] * devices, waits=StreamWaits.empty(), **others
    )


def replay_of(path: Path, settings: Settings = SETTINGS) -> Replayed:
    """The report about a trace, and the model of its judged time."""
    with open_trace(path, reader=settings.reader, full_hash=settings.full_hash) as trace:
        return replayed(trace, settings)


def replay_of_program(build: Build, gpus: int = 1, capture: Capture = EVERYTHING) -> Replayed:
    """Those of a simulated program."""
    with TemporaryDirectory() as folder:
        return replay_of(simulated(build, gpus, capture)[0].write(Path(folder) / "trace.sqlite"))


@cache
def replay_of_pair(name: str) -> Replayed:
    """Those of the program of a pair as it is before its fix."""
    pair = PAIRS[name]
    return replay_of_program(pair.before, pair.gpus, pair.capture)


def modelled(found: Replayed) -> Model:
    """The model, which there is."""
    assert isinstance(found.model, Model), found.model
    return found.model


def model_of_pair(name: str) -> Model:
    """The model of the program of a pair."""
    return modelled(replay_of_pair(name))


def calls_of(work: Work, length: int = 3) -> CallRows:
    """The calls that launched operations, each `length` ns long, all of one thread."""
    same = np.zeros(len(work), dtype=np.int64)
    return CallRows(work.issued, work.issued + length, same + 7, same, same, same)


def threads_of(work: Work, full: DeviceWaits | None = None) -> ThreadActions:
    """Threads that launch operations and wait for nothing."""
    none, launches = DeviceWaits.empty(), np.unique(work.launch[work.launch >= 0])
    return ThreadActions(
        launches,
        DeviceWaitTable(none, Finished.empty(), none.thread, none.thread, none.thread),
        full or none,
        Wakes.empty(),
        np.empty(0, np.int64),
        MpiCalls.empty(),
        Timed.empty(),
        Behind.empty(),
        none,
    )
