"""Where the time of each part went: what stayed, what is seen to have another name, and the rest in proportion."""

from __future__ import annotations

from nsysdiag.comparison.facts import Move, PartChange
from nsysdiag.comparison.waterfall import moves
from tests.output.compare_samples import US, part

ROWS = [part("compute", 500, 500), part("sync", 400, 100), part("io_wait", 0, 60), part("host_compute", 0, 60)]


def rest(*moved: tuple[str | None, str | None, int, int]) -> list[Move]:
    """What stayed, 500 of compute and 100 of waits, and what moved, in us; the longest first."""
    stayed = [("compute", "compute", 500, 500), ("sync", "sync", 100, 100)]
    found = [Move(before=one, after=two, ns=ns * US, seen_ns=seen * US) for one, two, ns, seen in (*stayed, *moved)]
    return sorted(found, key=lambda move: (-move.ns, move.before or "", move.after or ""))


def found(seen: dict[tuple[str, str], float], rows: list[PartChange] = ROWS) -> list[Move]:
    return moves(rows, {names: ns * US for names, ns in seen.items()})


def test_in_proportion_where_nothing_is_seen() -> None:
    """120 of the 300 that the waits lost came, half of it to each; nothing of it is seen."""
    equal = rest(("sync", "host_compute", 60, 0), ("sync", "io_wait", 60, 0), ("sync", None, 180, 0))
    assert found({}) == equal


def test_what_is_seen_comes_first() -> None:
    assert found({("sync", "io_wait"): 40}) == rest(
        ("sync", "io_wait", 60, 40), ("sync", "host_compute", 60, 0), ("sync", None, 180, 0)
    )


def test_no_more_is_seen_than_the_other_got() -> None:
    assert found({("sync", "io_wait"): 900}) == rest(
        ("sync", "io_wait", 60, 60), ("sync", "host_compute", 60, 0), ("sync", None, 180, 0)
    )


def test_causes_that_are_no_row_and_causes_that_stayed_are_not_seen() -> None:
    """As where one side could not tell a cause: its time is in another row."""
    seen = {("sync", "lock_wait"): 40.0, ("lock_wait", "io_wait"): 40.0, ("sync", "sync"): 40.0}
    assert found(seen) == found({})


def test_compute_is_never_idle_time_under_another_name() -> None:
    rows = [part("compute", 500, 560), part("sync", 400, 340)]
    assert found({("sync", "compute"): 60.0}, rows) == [
        Move(before="compute", after="compute", ns=500 * US, seen_ns=500 * US),
        Move(before="sync", after="sync", ns=340 * US, seen_ns=340 * US),
        Move(before=None, after="compute", ns=60 * US, seen_ns=0),
        Move(before="sync", after=None, ns=60 * US, seen_ns=0),
    ]
