"""Messages between ranks of one trace: which receive is of which send, and who has to wait."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysdiag.events.collectives import UNKNOWN, Does, Messages, read_messages
from nsysdiag.replay.meetings import waits_for_messages
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder, global_tid
from tests.replay.pairs import PAIRS
from tests.replay.pairs.messages import PAIRS as KNOWN
from tests.replay.pairs.pair import Pair
from tests.replay.pairs.prediction import predicted

SEND, RECEIVE = int(Does.SEND), int(Does.RECEIVE)
Row = tuple[int, int, int, int, int, int, int]


def messages(*rows: Row) -> Messages:
    """By posted, begin, end, rank, remote, tag and what each does; the thread is the rank."""
    posted, begin, end, rank, remote, tag, does = (np.array(each, dtype=np.int64) for each in zip(*rows, strict=True))
    return Messages(rank, posted, begin, end, rank, remote, tag, does)


def send(begin: int, end: int, *, tag: int = 0) -> Row:
    """From rank 0 to rank 1."""
    return begin, begin, end, 0, 1, tag, SEND


def receive(begin: int, end: int, *, tag: int = 0) -> Row:
    """By rank 1 from rank 0."""
    return begin, begin, end, 1, 0, tag, RECEIVE


def waits(*rows: Row, rank: int = 1) -> list[tuple[int, int, int]]:
    """The begin and the end of each wait of a rank, and when the last call that it is for came."""
    found = waits_for_messages(messages(*rows))
    left = found.take(found.leaves & (found.thread == rank))
    return sorted(zip(left.begin.tolist(), left.end.tolist(), left.came.tolist(), strict=True))


class TestPairs:
    def test_the_nth_receive_is_of_the_nth_send(self) -> None:
        assert waits(send(10, 12), send(50, 52), receive(5, 20), receive(30, 60)) == [(5, 20, 10), (30, 60, 50)]

    def test_each_tag_is_counted_alone(self) -> None:
        found = waits(send(10, 12), send(14, 16, tag=7), receive(0, 30, tag=7), receive(40, 45))
        assert found == [(0, 30, 14), (40, 45, 40)]

    def test_a_receive_before_its_send_is_of_another(self) -> None:
        assert waits(send(10, 12), receive(2, 5)) == []

    @pytest.mark.parametrize("lost", ["send", "receive"])
    def test_a_call_that_is_missing_at_a_border_moves_the_others(self, lost: str) -> None:
        rows = [(send(100 * at, 100 * at + 1), receive(100 * at - 50, 100 * at + 5)) for at in range(1, 9)]
        kept = [row for pair in rows for row in pair]
        kept.remove(rows[0][0] if lost == "send" else rows[-1][1])
        found = waits(*kept)
        assert len(found) == 7
        assert all(end - came == 5 for _, end, came in found)

    @pytest.mark.parametrize("lost", [(0, 15), (1, 14)])
    def test_with_a_call_missing_at_each_border_nothing_is_known(self, lost: tuple[int, int]) -> None:
        rows = [(send(100 * at, 100 * at + 1), receive(100 * at - 50, 100 * at + 5)) for at in range(1, 9)]
        kept = [row for pair in rows for row in pair]
        assert waits(*(row for at, row in enumerate(kept) if at not in lost)) == []


class TestWaits:
    def test_a_send_that_once_ended_before_the_receive_never_waits(self) -> None:
        found = waits(send(10, 12), receive(20, 25), send(30, 60), receive(40, 45), rank=0)
        assert found == []

    def test_a_send_that_waited_does(self) -> None:
        found = waits_for_messages(messages(send(10, 45), receive(40, 46), send(50, 85), receive(80, 86)))
        assert found.leaves.sum() == 4
        assert found.sure.all()

    def test_a_send_after_all_receives_may_wait(self) -> None:
        found = waits_for_messages(messages(send(10, 15), receive(2, 16), send(30, 35), receive(22, 36)))
        assert found.sure.tolist().count(False) == 2

    def test_one_call_waits_for_several_messages(self) -> None:
        rows = [(5, 40, 60, 1, 0, 0, RECEIVE), (6, 40, 60, 1, 2, 0, RECEIVE)]
        assert waits(*rows, send(20, 21), (50, 50, 51, 2, 1, 0, SEND)) == [(40, 60, 50)]

    def test_a_request_that_nobody_is_known_to_wait_for_ends_no_wait(self) -> None:
        assert waits((5, UNKNOWN, UNKNOWN, 1, 0, 0, RECEIVE), send(10, 12)) == []


def trace_of(folder: Path, **columns: int) -> Messages:
    """What is read of a send and a receive with these columns in place of others."""
    trace = TraceBuilder(schema="3.24.8")
    for rank, name in ((0, "MPI_Send"), (1, "MPI_Recv")):
        thread = global_tid((100 + rank, 100 + rank))
        row = {"start": 10, "end": 20, "globalTid": thread, "textId": trace.string(name), "commHandle": 1, "tag": 3}
        trace.row("MPI_P2P_EVENTS", {**row, "remoteRank": 1 - rank, "requestHandle": 0, **(columns if rank else {})})
        trace.row("MPI_RANKS", {"globalTid": thread, "rank": rank})
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        return read_messages(opened)


class TestRead:
    def test_both_sides(self, tmp_path: Path) -> None:
        found = trace_of(tmp_path)
        assert sorted(found.rank.tolist()) == [0, 1]
        assert found.does.tolist() == [SEND, RECEIVE]

    @pytest.mark.parametrize("column", ["remoteRank", "tag"])
    def test_a_receive_from_anybody_may_be_of_any_message(self, column: str, tmp_path: Path) -> None:
        assert len(trace_of(tmp_path, **{column: -1})) == 0


@pytest.mark.parametrize("schema", ["2.9.1", "3.13.2"])
def test_older_exports(schema: str, tmp_path: Path) -> None:
    with open_trace(TraceBuilder(schema=schema).write(tmp_path / "trace.sqlite")) as opened:
        assert len(read_messages(opened)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("each", KNOWN, ids=lambda each: each.name)
def test_known_messages_are_followed(each: Pair, tmp_path: Path) -> None:
    outcome = predicted(each, tmp_path)
    assert each.name in PAIRS
    assert outcome.low <= outcome.true <= outcome.high
    assert outcome.high - outcome.low < 0.1
