"""Comparisons of ranks made by hand, for what the outputs do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag import typed
from nsysdiag.phrases import finished
from nsysdiag.ranks.facts import CollectiveGroup, RankComparison, RankRow, RankWait, Straggler
from nsysdiag.ranks.report import KIND, RANKS_SCHEMA_VERSION, RanksReport, RankTrace
from nsysdiag.report import CauseInfo, Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

MS, US = 1_000_000, 1_000
SENTENCE = (
    "gpu1 is late for 12 of 40 collectives, by 9.00 ms in all, and the others wait 26.0 ms for it. "
    "Why: 80.0% host code."
)


def rank_row(rank: str, *, device: str = "gpu0", **changes: int) -> RankRow:
    """A rank of 100 ms: 45 compute, 10 exposed communication, 5 exposed copies, 40 idle."""
    numbers = {
        "span_start_ns": 90 * MS,
        "span_ns": 100 * MS,
        "compute_ns": 45 * MS,
        "exposed_comm_ns": 10 * MS,
        "exposed_copy_ns": 5 * MS,
        "idle_ns": 40 * MS,
        "collectives": 42,
        "matched": 40,
        "wait_ns": 8 * MS,
        "transfer_ns": 2 * MS,
        "late": 0,
        "late_ns": 0,
        "caused_ns": 0,
    }
    where = {"file": "train.sqlite", "device": device, "name": "NVIDIA H100"}
    return RankRow(rank=rank, offset_ns=1500, offset_error_ns=200, **where, **numbers | changes)


def comparison(
    names: Sequence[str] = ("gpu0", "gpu1", "gpu2", "gpu3"), causes: Sequence[str] = ("host_compute", "compute")
) -> RankComparison:
    """The second rank is late, for two reasons; a wait that nobody is to blame for; one kind that does not match."""
    late, *others = (names[1], names[0], *names[2:])
    cost = {"late": 12, "late_ns": 9 * MS, "caused_ns": 26 * MS}
    more = dict.fromkeys(causes, 0) | {causes[0]: 7_200 * US, causes[-1]: 1_800 * US}
    waits = [RankWait(rank=rank, late_rank=late, wait_ns=26 * MS // len(others), causes=more) for rank in others]
    return RankComparison(
        basis="collectives",
        sentence=SENTENCE if late == "gpu1" else "".join(names),
        ranks=[rank_row(rank, device=f"gpu{at}", **(cost if rank == late else {})) for at, rank in enumerate(names)],
        groups=[
            CollectiveGroup(
                kind="AllReduce",
                communicator="0x1f",
                ranks=list(names),
                count=40,
                transfer_ns=8 * MS,
                wait_ns=26 * MS,
                spread_ns=5_100,
                late=12,
            )
        ],
        unmatched=[f"ReduceScatter: {names[-1]} ran 2: no other rank ran any"],
        stragglers=[
            Straggler(
                rank=late,
                late=12,
                of=40,
                late_ns=9 * MS,
                caused_ns=26 * MS,
                more=more,
                meanwhile={"compute": 9 * MS},
                confidence=0.92,
                worst_start_ns=120 * MS,
                worst_ns=2 * MS,
            )
        ],
        waits=[*waits, RankWait(rank=late, late_rank=None, wait_ns=200 * US, causes={})],
        imbalance={"compute_ns": 0.02, "exposed_comm_ns": 1.25, "exposed_copy_ns": 0.0, "idle_ns": 0.5, "wait_ns": 2.0},
        slowest=late,
        fastest=names[0],
        clock="aligned by the ends of collectives, up to 2.00 ms from the starts of the sessions",
        clock_error_ns=1_200,
    )


def ranks_report(compared: RankComparison | None = None, file: str = "train.sqlite") -> RanksReport:
    """Four ranks in two files."""
    traces = [
        RankTrace(
            file=name,
            size_bytes=3_456_789,
            fingerprint="b1946ac92492d2347c6235b4d2611184",
            nsys_version="2025.1.1",
            start_utc_ns=1_700_000_000_000_000_000,
            warnings=[typed.file(name) + ": 3 events were dropped"],
        )
        for name in (file, "second.sqlite")
    ]
    causes = [
        CauseInfo(id="host_compute", title="Host code", meaning="The thread was on a CPU.", color="#16a34a"),
        CauseInfo(id="sync", title="Synchronization", meaning="The thread waited for the GPU.", color="#d1495b"),
    ]
    made = RanksReport(
        schema_version=RANKS_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version="0.0.0"),
        traces=traces,
        comparison=compared or comparison(),
        causes=causes,
        settings={"same_gpu": True},
    )
    return finished(made)
