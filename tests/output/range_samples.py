"""A tree of NVTX ranges of a device of 100 ms, 60 of them work."""

from __future__ import annotations

from nsysdiag.ranges.facts import RangePath, RangeTree

MS = 1_000_000


def path(
    names: list[str], work: int, own_work: int, idle: dict[str, int], own_idle: int, instances: int = 0
) -> RangePath:
    """A row; times in ms, the projected ones are 1 ms longer than the work."""
    return RangePath(
        path=names,
        instances=instances,
        projected_ns=(work + 1) * MS if instances else 0,
        operations=40 * work,
        work_ns=work * MS,
        own_work_ns=own_work * MS,
        own_idle_ns=own_idle * MS,
        idle={cause: ns * MS for cause, ns in idle.items()},
    )


def range_tree(step: str = "train", inner: str = "forward", other: str = "load") -> RangeTree:
    """
    step    50 ms of work, 20 idle    inside it: forward, 42 ms of work, 12 idle
    other   nothing launched, 12 ms idle
    none    10 ms of work, 8 idle
    """
    whole = {"sync": 18, "host_compute": 9, "lock_wait": 5, "launch_call": 4, "uncovered": 4}
    return RangeTree(
        rows=[
            path([], 60, 10, whole, 8),
            path([step], 50, 8, {"sync": 14, "host_compute": 6}, 8, 10),
            path([step, inner], 42, 42, {"sync": 12}, 12, 20),
            path([other], 0, 0, {"sync": 4, "lock_wait": 5, "host_compute": 3}, 12),
        ],
        count=9,
    )
