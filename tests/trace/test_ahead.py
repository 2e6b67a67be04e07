"""Tables that are read in the background: each is handed out once, with whatever went wrong."""

from __future__ import annotations

import sys
import threading
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag import open_trace
from nsysdiag.arrays import spill
from nsysdiag.arrays.constant import constant
from nsysdiag.trace import trace as tracing
from nsysdiag.trace.ahead import InPlace, Parts, ReadAhead
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.reader import READERS
from nsysdiag.trace.tables import ColumnSpec
from tests.trace.files import KERNEL, KERNEL_ROW, NVTX, execute, insert

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.arrays.intervals import IntArray


REQUESTS = [
    ("CUPTI_ACTIVITY_KIND_KERNEL", ("start", "end", "globalPid", "correlationId", "graphNodeId", "blocks")),
    ("NVTX_EVENTS", ("start", "text", "globalTid")),
]


def parts(table: str, *columns: str) -> Parts:
    """The table as a whole."""
    return Parts.whole(partial(read, table, *columns))


def read(table: str, *columns: str) -> Columns:
    """As many rows as the name of the table has letters."""
    if table == "damaged":
        raise ValueError("a damaged table")
    return Columns({name: np.arange(len(table)) for name in columns}, columns, len(table))


def test_each_is_handed_out_once() -> None:
    ahead = ReadAhead(parts, [("calls", ("start", "end")), ("calls", ("start",))])
    found = ahead.take("calls", ("start", "end"))
    assert found is not None
    assert found["end"].tolist() == [0, 1, 2, 3, 4]
    assert ahead.take("calls", ("start", "end")) is None
    assert ahead.take("calls", ("end", "start")) is None
    assert ahead.take("calls", ("start",)) is not None
    ahead.close()


def test_what_went_wrong_is_raised_where_it_is_asked_for() -> None:
    ahead = ReadAhead(parts, [("damaged", ("start",)), ("calls", ("start",))])
    assert ahead.take("calls", ("start",)) is not None
    with pytest.raises(ValueError, match="a damaged table"):
        ahead.take("damaged", ("start",))
    ahead.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all arrays stay in memory")
def test_what_waits_is_kept_in_files_and_what_is_waited_for_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "LEAST_BYTES", 1)
    asked = threading.Event()

    def slowly(table: str, *columns: str) -> Columns:
        assert asked.wait(60)
        return read(table, *columns)

    def parts_of(table: str, *columns: str) -> Parts:
        return Parts.whole(partial(slowly if table == "kernels" else read, table, *columns))

    ahead = ReadAhead(parts_of, [("kernels", ("start",)), ("calls", ("start",))])
    threading.Timer(0.05, asked.set).start()
    kernels, calls = (ahead.take(table, ("start",)) for table in ("kernels", "calls"))
    ahead.close()
    assert kernels is not None
    assert calls is not None
    assert [isinstance(each["start"].base, np.ndarray) for each in (kernels, calls)] == [False, True]


@pytest.mark.parametrize(("rows", "parts"), [(7, 1), (8, 2), (23, 2), (24, 4), (64, 8), (10_000, 8)])
def test_a_table_of_many_rows_is_read_in_an_even_number_of_parts(
    rows: int, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = execute(tmp_path / "t.sqlite", KERNEL)
    insert(path, REQUESTS[0][0], [(at, at + 1, *KERNEL_ROW[2:]) for at in range(1, rows + 1)])
    monkeypatch.setattr(tracing, "MANY_ROWS", 8)
    with open_trace(path) as trace:
        found = trace._parts(*REQUESTS[0][:1], *REQUESTS[0][1])
        starts = [each(None)["start"].tolist() for each in found.reads]
    assert len(found.reads) == parts
    assert parts == 1 or found.rows == [len(each) for each in starts]
    assert np.concatenate(starts).tolist() == list(range(1, rows + 1))
    assert max(map(len, starts)) - min(map(len, starts)) <= 1


def test_nothing_is_left_behind_when_it_is_closed() -> None:
    going_on, begun = threading.Event(), threading.Event()

    def slowly(table: str, *columns: str) -> Columns:
        begun.set()
        going_on.wait(10)
        return read(table, *columns)

    ahead = ReadAhead(
        lambda *asked: Parts.whole(partial(slowly, *asked)), [(f"table {number}", ("start",)) for number in range(9)]
    )
    assert begun.wait(10)
    going_on.set()
    ahead.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("nsysdiag-read")]
    assert ahead.take("table 0", ("start",)) is None


def test_where_no_thread_can_be_started_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one cannot: the first ends before the error goes on."""
    started: list[str] = []
    going_on = threading.Event()
    start = threading.Thread.start

    def once(self: threading.Thread) -> None:
        if started:
            going_on.set()
            raise RuntimeError("can't start new thread")
        started.append(self.name)
        start(self)

    def slowly(table: str, *columns: str) -> Columns:
        going_on.wait(10)
        return read(table, *columns)

    monkeypatch.setattr(threading.Thread, "start", once)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        ReadAhead(lambda *asked: Parts.whole(partial(slowly, *asked)), [("calls", ("start",)), ("kernels", ("start",))])
    assert len(started) == 1
    assert started[0] not in {each.name for each in threading.enumerate()}


STARTS = [ColumnSpec("start")]


def test_parts_in_their_places_are_joined_without_a_copy() -> None:
    """Also if one of them is a constant, which has memory of its own."""
    together = InPlace([3, 2])
    (first,), (second,) = (together.place(number, STARTS) for number in range(2))
    first[:], second[:] = [1, 2, 3], 7
    found = together.joined("start", [first, constant(second, 2)])
    assert found is first.base
    assert found.tolist() == [1, 2, 3, 7, 7]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.arange(2, dtype=np.int32), np.arange(2, dtype=np.int32)),
        (np.arange(3, dtype=np.int32), np.array([7, 1 << 40])),
    ],
)
def test_parts_that_do_not_fit_are_joined_elsewhere(first: IntArray, second: IntArray) -> None:
    """The first one has fewer rows than were expected, or a number is wider."""
    together = InPlace([3, 2])
    (place,) = together.place(0, [ColumnSpec("streamId")])
    assert place.dtype == np.int32
    found = together.joined("streamId", [first, second])
    assert not np.shares_memory(found, place.base)
    assert found.tolist() == [*first.tolist(), *second.tolist()]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", [None, "step"])
@pytest.mark.parametrize("last", [70, "odd"])
@pytest.mark.parametrize("first_row", [1, -30])
def test_the_parts_are_the_table(
    reader: str, text: str | None, last: object, first_row: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the cells and row numbers are: the values, their types, the memory of a constant, what is warned of."""
    path = execute(tmp_path / "t.sqlite", KERNEL, NVTX)
    kernels = [(at, at + 1, *KERNEL_ROW[2:5], 7 if at < 50 else 1 << 40, *KERNEL_ROW[6:]) for at in range(70)]
    insert(path, REQUESTS[0][0], [*kernels, (last, 71, *KERNEL_ROW[2:])])
    insert(path, "NVTX_EVENTS", [(at, 2, 59, text and f"{text} {at % 50}", 1, None) for at in range(60)])
    execute(path, f"UPDATE {REQUESTS[0][0]} SET rowid = {first_row} WHERE rowid = 1")
    monkeypatch.setattr(tracing, "MANY_ROWS", 2)
    with open_trace(path, reader=reader) as ahead, open_trace(path, reader=reader) as whole:
        ahead.read_ahead(REQUESTS)
        for table, columns in REQUESTS:
            found, expected = (trace.read(table, *columns) for trace in (ahead, whole))
            assert found.tuples() == expected.tuples()
            assert len(found) > 50
            for name in columns:
                one, other = (getattr(each[name], "codes", each[name]) for each in (found, expected))
                assert (one.dtype, one.strides) == (other.dtype, other.strides)
        assert ahead.tables() == whole.tables()
        assert ahead.warnings == whole.warnings
        assert len(whole.warnings) == (last == "odd")
