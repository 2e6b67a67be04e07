"""Ranks that exchange messages of MPI, of which the trace tells who sends them to whom."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US
from tests.replay.pairs.mpi import PACKED, halo
from tests.replay.pairs.pair import Pair, pair
from tests.replay.pairs.ranks import LIKE_MEDIAN

EVEN = {"late": 500 * US}
PAIRS: tuple[Pair, ...] = (
    pair(
        "halo exchange of two known ranks",
        partial(halo, call="MPI_Sendrecv", late=3 * MS, told=True),
        PACKED,
        (),
        (0.5, 0.7),
        finding="host",
        gpus=2,
        quick=True,
    ),
    pair(
        "halo exchange with a late rank that is known",
        partial(halo, call="MPI_Sendrecv", late=3 * MS, told=True),
        EVEN,
        LIKE_MEDIAN,
        (0.4, 0.7),
        gpus=2,
    ),
    pair(
        "halo exchange in a ring of known ranks",
        partial(halo, call="MPI_Sendrecv", members=4, late=2 * MS, told=True),
        EVEN,
        LIKE_MEDIAN,
        (0.3, 0.6),
        gpus=4,
    ),
    pair(
        "receives from a known rank that packs",
        partial(halo, call="MPI_Recv", late=3 * MS, ring=False, told=True),
        PACKED,
        (),
        (0.5, 0.7),
        finding="host",
        gpus=2,
    ),
)
