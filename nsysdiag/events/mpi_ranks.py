"""Which ranks of an MPI program a trace holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.events.identity import process_names, thread_names

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

MOST_RANKS = 1 << 24
"""No program has more: other numbers are no sizes."""
_NAMED = re.compile(r"MPI Rank ([0-9]{1,8})")
"""What nsys calls the main thread of a rank."""


class MpiRanks(Struct, frozen=True):
    """The `ranks` in MPI_COMM_WORLD of the processes of a trace, sorted, empty if unknown. There are at least
    `at_least` ranks, as a communicator may have a part of them."""

    ranks: tuple[int, ...] = ()
    at_least: int = 0


def together(found: Iterable[MpiRanks]) -> MpiRanks:
    """The ranks of several traces of one program."""
    each = list(found)
    ranks = tuple(sorted({rank for one in each for rank in one.ranks}))
    return MpiRanks(ranks, max((one.at_least for one in each), default=0))


def mpi_ranks(trace: Trace) -> MpiRanks:
    """By the names of threads and processes, and the tables of ranks and communicators."""
    names = [*thread_names(trace).values(), *process_names(trace).values()]
    found = {int(match[1]) for name in names if (match := _NAMED.fullmatch(name))}
    found |= set(trace.read("MPI_RANKS", "rank")["rank"].tolist())
    ranks = tuple(sorted(rank for rank in found if 0 <= rank < MOST_RANKS))
    sizes = trace.read("MPI_COMMUNICATORS", "size")["size"].tolist()
    known = [size for size in sizes if size <= MOST_RANKS]
    return MpiRanks(ranks, max([*known, *(rank + 1 for rank in ranks)], default=0))
