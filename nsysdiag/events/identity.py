"""Packed ids (globalTid = hardware << 56 | vm << 48 | pid << 24 | tid), and names of threads and processes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import constant, is_constant
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import IntArray

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


_LOW_24_BITS = 0xFFFFFF
"""The thread in a globalTid, and of the bits above it the process: nsys packs them this way."""
Ids = TypeVar("Ids", int, IntArray)


def process_of(thread: Ids) -> Ids:
    """The globalPid of a globalTid."""
    found: Ids = once(thread, lambda value: value & ~_LOW_24_BITS)
    return found


def pid_of(identity: Ids) -> Ids:
    """The operating system's process id in a globalTid or globalPid."""
    found: Ids = once(identity, lambda value: (value >> 24) & _LOW_24_BITS)
    return found


def tid_of(thread: Ids) -> Ids:
    """The operating system's thread id in a globalTid."""
    found: Ids = once(thread, lambda value: value & _LOW_24_BITS)
    return found


def joint(first: IntArray, second: IntArray | int, width: int) -> IntArray:
    """One number for each pair of codes, the second of `width`; in 64 bits, as codes are kept in 32 where they fit."""
    pair: IntArray = np.multiply(first, width, dtype=np.int64)
    pair += second
    return pair


def once(value: Any, of: Callable[[Any], Any]) -> Any:
    """`of` applied to a number or an array; to one element only, where one value stands for all rows."""
    if isinstance(value, np.ndarray) and is_constant(value):
        return constant(of(value[:1]), len(value))
    return of(value)


_OF_NSYS = re.compile(r"\[NSys.*|.*CommsProcess.*|nsys-\w*|CUPTI.*", re.IGNORECASE)


def is_of_nsys(name: str) -> bool:
    """Whether a thread of this name is one of nsys itself."""
    return _OF_NSYS.fullmatch(name) is not None


def thread_names(trace: Trace) -> dict[int, str]:
    """The name of each thread (globalTid) that has one; of several names the first in the alphabet."""
    columns = trace.read("ThreadNames", "nameId", "globalTid")
    named = zip(columns["globalTid"].tolist(), trace.strings.texts(columns["nameId"]), strict=True)
    return dict(sorted(named, reverse=True))


def nsys_threads(trace: Trace) -> IntArray:
    """Threads of nsys itself inside the profiled processes (globalTids): nothing of the program waits for them."""
    columns = trace.read("ThreadNames", "nameId", "globalTid")
    own = [is_of_nsys(name) for name in trace.strings.texts(columns["nameId"])]
    return distinct_values(columns["globalTid"][np.array(own, dtype=np.bool_)])


def process_names(trace: Trace) -> dict[int, str]:
    """The program of each process (globalPid) that has a name; of several names the first in the alphabet."""
    named = trace.read("PROCESSES", "globalPid", "name").tuples()
    return dict(sorted(((process, name) for process, name in named if name), reverse=True))


# Which ranks of an MPI program a trace holds.

MOST_RANKS = 1 << 24
"""No program has more: other numbers are not sizes."""
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
