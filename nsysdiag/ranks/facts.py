"""A comparison of ranks as plain data: the balance of their work, the ranks late for collectives, and why.

Times are integer nanoseconds. Moments are on the clock of the first file; a rank's own clock is `offset_ns` behind it.
Work has the same names as in iterations: compute, exposed_comm, exposed_copy; idle time has its cause.
"""

from __future__ import annotations

from typing import Annotated

from nsysdiag.fields import (
    PPM,
    FileName,
    GpuName,
    Moment,
    Ns,
    NsByCause,
    OwnText,
    RankName,
    Ratio,
    Sentence,
    Share,
    TotalCount,
    TotalNs,
)
from nsysdiag.record import Record


class RankRow(Record, frozen=True):
    """One rank: a device of a file. compute_ns + exposed_comm_ns + exposed_copy_ns + idle_ns = span_ns.
    `exposed_comm_ns` includes idle time of the device in which a thread that launches to it is in a call of MPI.

    `collectives` is how many it ran, `matched` how many of them were found on other ranks too. Inside these it spent
    `wait_ns` more than the rank that came last, and `transfer_ns` as long as that one. `late` counts those that it was
    last to begin and late for, `late_ns` adds up its delays, `caused_ns` what all others waited in them. The offset
    holds at the first collective that tells it, and grows by `drift_ppm` millionths of the time from then on.
    """

    rank: RankName
    file: FileName
    device: OwnText
    name: GpuName
    offset_ns: Ns
    offset_error_ns: Ns | None
    span_start_ns: Moment
    span_ns: TotalNs
    compute_ns: TotalNs
    exposed_comm_ns: TotalNs
    exposed_copy_ns: TotalNs
    idle_ns: TotalNs
    collectives: TotalCount
    matched: TotalCount
    wait_ns: TotalNs
    transfer_ns: TotalNs
    late: TotalCount
    late_ns: TotalNs
    caused_ns: TotalNs
    drift_ppm: Annotated[float, PPM] = 0.0


class CollectiveGroup(Record, frozen=True):
    """The collectives of one kind that the same ranks ran together. `communicator` is its number in the trace (in hex),
    None if the k-th on one rank was matched with the k-th on the others.

    `transfer_ns` adds up the shortest run of each, `wait_ns` what all ranks ran longer than that. `spread_ns` is how
    far apart their ends are (95th percentile): no delay below it is believed. `late` is how many had a late rank.
    """

    kind: OwnText
    communicator: OwnText | None
    ranks: list[RankName]
    count: TotalCount
    transfer_ns: TotalNs
    wait_ns: TotalNs
    spread_ns: Ns
    late: TotalCount


class Straggler(Record, frozen=True):
    """A rank that others waited for: `late` times out of `of`, `late_ns` in all since more than half of the others had
    begun; the others waited `caused_ns` together.

    `more` divides `late_ns` by what the rank had more of than the median rank since both were in step: work by name,
    idle time by cause; empty if nothing can be compared. `meanwhile` is what it did from the time more than half of the
    others had begun until it began; it adds up to `late_ns` without time outside the window. `confidence` is 0..1. The
    worst delay ends at `worst_start_ns`, on the clock of the first file.
    """

    rank: RankName
    late: TotalCount
    of: TotalCount
    late_ns: TotalNs
    caused_ns: TotalNs
    more: dict[OwnText, TotalNs]
    meanwhile: dict[OwnText, TotalNs]
    confidence: Share
    worst_start_ns: Moment
    worst_ns: Ns


class RankWait(Record, frozen=True):
    """What one rank waited for another in collectives, divided by why the other one was late: `causes` adds up to
    `wait_ns`. Both `late_rank` and `causes` are empty for waits that no single rank can be blamed for."""

    rank: RankName
    late_rank: RankName | None
    wait_ns: TotalNs
    causes: NsByCause


class RankComparison(Record, frozen=True):
    """Ranks, or the devices of one trace, compared.

    `basis` is what is compared: `collectives`, the time from the first to the last common collective; without these
    `iterations`, from the first to the last common one; else `window`, each one's whole window. `imbalance` is (largest
    - smallest) / mean of the fields of RankRow that it names. `slowest` is the rank with most time outside exposed
    communication, `fastest` that with least; None for `window`. `clock` describes how the clocks were aligned.
    `clock_error_ns` is the largest error of that, 0 for one clock, None if unknown.
    """

    basis: OwnText
    sentence: Sentence
    ranks: list[RankRow]
    groups: list[CollectiveGroup]
    unmatched: list[Sentence]
    stragglers: list[Straggler]
    waits: list[RankWait]
    imbalance: dict[OwnText, Ratio]
    slowest: RankName | None
    fastest: RankName | None
    clock: OwnText
    clock_error_ns: Ns | None
