"""Tables that are read in the background: each is handed out once, with whatever went wrong."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from nsysdiag.trace.columns import Columns, ReadAhead


def read(table: str, *columns: str) -> Columns:
    """As many rows as the name of the table has letters."""
    if table == "damaged":
        raise ValueError("a damaged table")
    return Columns({name: np.arange(len(table)) for name in columns}, columns, len(table))


def test_each_is_handed_out_once() -> None:
    ahead = ReadAhead(read, [("calls", ("start", "end")), ("calls", ("start",))])
    found = ahead.take("calls", ("start", "end"))
    assert found is not None
    assert found["end"].tolist() == [0, 1, 2, 3, 4]
    assert ahead.take("calls", ("start", "end")) is None
    assert ahead.take("calls", ("end", "start")) is None
    assert ahead.take("calls", ("start",)) is not None
    ahead.close()


def test_what_went_wrong_is_raised_where_it_is_asked_for() -> None:
    ahead = ReadAhead(read, [("damaged", ("start",)), ("calls", ("start",))])
    assert ahead.take("calls", ("start",)) is not None
    with pytest.raises(ValueError, match="a damaged table"):
        ahead.take("damaged", ("start",))
    ahead.close()


def test_nothing_is_left_behind_when_it_is_closed() -> None:
    going_on, begun = threading.Event(), threading.Event()

    def slowly(table: str, *columns: str) -> Columns:
        begun.set()
        going_on.wait(10)
        return read(table, *columns)

    ahead = ReadAhead(slowly, [(f"table {number}", ("start",)) for number in range(9)])
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
        ReadAhead(slowly, [("calls", ("start",)), ("kernels", ("start",))])
    assert len(started) == 1
    assert started[0] not in {each.name for each in threading.enumerate()}
