"""Synchronizations that outlast what is recorded, and streams whose events are not recorded."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body


def outlasting(
    sim: Simulation,
    marks: Marks,
    *,
    host: int = 800 * US,
    factor: float = 1.0,
    known: int = 100 * US,
    unknown: int = 2 * MS,
    first: bool = False,
    synchronized: bool = True,
) -> None:
    """A synchronization waits for kernels of which no row is in the trace, launched before the host code or behind it.

    T    [host ...][l][graph][sync ...................]     [graph][host ...][l][sync .....]
    gpu              [k][== not recorded ==============]           [== not recorded =======]
    """
    process = solver(sim)
    other = process.stream()

    def not_recorded(t: Thread, number: int) -> Body:
        yield from t.launch("solve_lost", round(varied(unknown, "lost", number)), other)

    def step(t: Thread, number: int) -> Body:
        if first:
            yield from not_recorded(t, number)
        yield from ranged(t, "prepare", t.compute(round(varied(host, "host", number) * factor), "collect"))
        yield from t.launch("solve", varied(known, "solve", number))
        if not first:
            yield from not_recorded(t, number)
        if synchronized:
            yield from t.synchronize()

    waking(loop(sim, marks, step, process=process))


def graphs_without_rows(
    sim: Simulation, marks: Marks, *, host: int = 800 * US, node: int = 150 * US, synchronized: bool = True
) -> None:
    """Graphs of which only the launch is recorded, and a synchronization.

    T    [host ...][l][graph][sync ...........][host ...]
    gpu              [k][== not recorded ======]
    """

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number), "collect")
        yield from t.launch("solve", varied(60 * US, "solve", number))
        yield from t.launch_graph([Node(f"node_{at}", varied(node, "node", number, at)) for at in range(4)])
        if synchronized:
            yield from t.synchronize()

    waking(loop(sim, marks, step))


def streams_in_turns(
    sim: Simulation, marks: Marks, *, host: int = 300 * US, each: int = 500 * US, synchronized: bool = True
) -> None:
    """A kernel of one stream, then one of another that waits for it by an event; the host waits for both.

    T         [host][l][e][l][sync ............][host]
    stream a           [= k =]
    stream b                  [== k ==]
    """
    process = solver(sim)
    first, second = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number), "collect")
        yield from t.launch("produce", varied(each, "produce", number), first)
        event = t.event()
        yield from t.record(event, first)
        yield from t.wait_event(second, event)
        yield from t.launch("consume", varied(each, "consume", number), second)
        back = t.event()
        yield from t.record(back, second)
        yield from t.wait_event(first, back)
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step, process=process)


def then_another_stream(sim: Simulation, marks: Marks, *, host: int = 900 * US, factor: float = 1.0) -> None:
    """A kernel waits for one of another stream, which has long ended by then, and would not have with less host code.

    T         [l][e][host ........][l][sync ..][l]
    stream a     [= k =]
    stream b                          [= k =]
    """
    process = solver(sim)
    first, second = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("produce", varied(700 * US, "produce", number), first)
        event = t.event()
        yield from t.record(event, first)
        yield from t.wait_event(second, event)
        yield from ranged(t, "prepare", t.compute(round(varied(host, "host", number) * factor), "collect"))
        yield from t.launch("consume", varied(500 * US, "consume", number), second)
        yield from t.synchronize()

    loop(sim, marks, step, process=process)


NO_SYNC, HALF, NOTHING = {"synchronized": False}, {"factor": 0.5}, (-0.02, 0.02)
FASTER = faster("host", "prepare", 0.5)
LOST = EVERYTHING.but(lost="solve_lost")
PAIRS: tuple[Pair, ...] = (
    pair(
        "kernels without rows, halved as well",
        partial(outlasting),
        {"unknown": 1 * MS, "known": 50 * US},
        faster("kernel", "solve*", 0.5),
        (0.3, 0.4),
        capture=LOST,
        tolerated=1.0,
        refusable=True,
    ),
    pair(
        "host code beside kernels without rows",
        partial(outlasting, first=True),
        HALF,
        FASTER,
        NOTHING,
        capture=LOST,
        tolerated=1.0,
        refusable=True,
    ),
    pair(
        "few kernels without rows beside host code",
        partial(outlasting, first=True, known=2 * MS, unknown=3 * MS),
        HALF,
        FASTER,
        (0.0, 0.1),
        capture=LOST,
        tolerated=1.0,
        refusable=True,
    ),
    pair(
        "sync for kernels without rows",
        outlasting,
        NO_SYNC,
        without("sync"),
        (0.2, 0.35),
        capture=LOST,
        tolerated=1.0,
        refusable=True,
    ),
    pair(
        "sync for graphs without rows",
        graphs_without_rows,
        NO_SYNC,
        without("sync"),
        (0.3, 0.5),
        capture=EVERYTHING.but(graphs="none"),
        tolerated=1.0,
        refusable=True,
    ),
    pair(
        "sync of two streams in turns, events not recorded",
        streams_in_turns,
        NO_SYNC,
        without("sync"),
        (0.15, 0.3),
        capture=EVERYTHING.but(event_rows=False, sync_rows=False),
        refusable=True,
    ),
    pair(
        "sync of two streams in turns",
        streams_in_turns,
        NO_SYNC,
        without("sync"),
        (0.15, 0.3),
    ),
    pair(
        "host code before a kernel that waits for another stream",
        then_another_stream,
        {"factor": 0.1},
        faster("host", "prepare", 0.1),
        (0.1, 0.2),
    ),
    pair(
        "host code before a kernel that waits for another stream, events not recorded",
        then_another_stream,
        {"factor": 0.1},
        faster("host", "prepare", 0.1),
        (0.1, 0.2),
        capture=EVERYTHING.but(event_rows=False, sync_rows=False),
        tolerated=1.0,
    ),
)
