"""That a trace holds some of the ranks of an MPI program: others may be why it waits, and use other GPUs."""

from __future__ import annotations

from itertools import pairwise

from nsysdiag.events.identity import MpiRanks
from nsysdiag.units import listed

MOST_LISTED = 4


def ranks_elsewhere(found: MpiRanks, processes: int | None, *, mpi: bool) -> str:
    """A sentence on ranks that are not in the trace; empty if there is no evidence of any. `processes` is how many did
    work on GPUs, None where that is not known; `mpi` says that the program uses MPI."""
    held, most = len(found.ranks), found.at_least
    if not held:
        one = mpi and processes == 1
        return "The trace holds one process of an MPI program: other ranks, if any, are not in it." if one else ""
    if held < most:
        return f"The trace holds {_some(found.ranks, most)}: the others are not in it."
    if held == 1:
        return "The trace holds only MPI rank 0."
    return ""


def ranks_left_out(found: MpiRanks) -> str:
    """A sentence on ranks of which no file is among several; empty if there is no evidence of any."""
    ends = (-1, *found.ranks, found.at_least)
    missing = [(before + 1, behind - 1) for before, behind in pairwise(ends) if behind - before > 1]
    if not found.ranks or not missing:
        return ""
    count = found.at_least - len(found.ranks)
    named = [f"{first}" if first == last else f"{first} to {last}" for first, last in missing]
    if len(named) > MOST_LISTED:
        return f"{count} of at least {found.at_least} MPI ranks are not among the files."
    one = f"MPI rank {named[0]} is"
    return f"{one if count == 1 else f'MPI ranks {listed(named)} are'} not among the files."


def _some(ranks: tuple[int, ...], most: int) -> str:
    """`MPI rank 7 of at least 8`, `MPI ranks 4 to 7 of at least 16`, `12 of at least 64 MPI ranks`."""
    first, last = ranks[0], ranks[-1]
    if len(ranks) == 1:
        return f"MPI rank {first} of at least {most}"
    if last - first == len(ranks) - 1:
        return f"MPI ranks {first} to {last} of at least {most}"
    if len(ranks) <= MOST_LISTED:
        return f"MPI ranks {listed(list(map(str, ranks)))} of at least {most}"
    return f"{len(ranks)} of at least {most} MPI ranks"
