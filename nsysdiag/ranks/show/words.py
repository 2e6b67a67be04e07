"""The sentences and the tables of a comparison of ranks."""

from __future__ import annotations

from typing import Any

from nsysdiag.document.columns import RecordColumn, RecordTable, columns
from nsysdiag.document.view import Causes, by_time, share_of
from nsysdiag.document.words import confidence_word, counted, instant
from nsysdiag.ranks.facts import CollectiveGroup, RankComparison, RankRow, RankWait, Straggler
from nsysdiag.units import format_ns, format_share

MOST_REASONS, LEAST_REASON, MOST_RANKS = 3, 0.01, 6
TITLE = "Rank comparison"
DEVICES_TITLE = "GPU comparison"
COMPARED = {
    "compute_ns": "compute",
    "exposed_comm_ns": "exposed communication",
    "exposed_copy_ns": "exposed copies",
    "idle_ns": "idle",
}
BASES = {
    "collectives": "From the end of the first to the end of the last collective common to all ranks.",
    "iterations": "From the first to the last iteration.",
    "window": "Each rank's whole window: no collective common to all ranks was found.",
}


def gist(found: RankComparison) -> str:
    """How many devices are compared, and how many of them are late."""
    return f"{counted(len(found.ranks), 'GPU')} compared, {counted(len(found.stragglers), 'straggler')}"


def basis_sentence(found: RankComparison) -> str:
    """Which time is compared."""
    return BASES.get(found.basis, found.basis)


def imbalance_sentence(found: RankComparison) -> str:
    """How far the ranks are from even, and who has most and least to do."""
    compared = {label: found.imbalance[name] for name, label in COMPARED.items() if name in found.imbalance}
    shares = [f"{label} {format_share(share, 1)}" for label, share in compared.items()]
    ends = f"; {found.slowest} has most time of its own, {found.fastest} least" if found.slowest else ""
    return f"Imbalance, (largest - smallest) / mean: {', '.join(shares)}{ends}."


def straggler_sentence(late: Straggler) -> str:
    """How often and how long a rank was late."""
    return (
        f"{late.rank}: late for {late.late:,} of {counted(late.of, 'collective')}, by {format_ns(late.late_ns)} in all "
        f"and {format_ns(late.worst_ns)} at worst, at {instant(late.worst_start_ns)}; the others waited "
        f"{format_ns(late.caused_ns)} for it ({confidence_word(late.confidence)})"
    )


def more_sentence(late: Straggler, causes: Causes) -> str:
    """Why a rank was late; empty where nothing tells."""
    return f"more than others: {reasons(late.more, causes)}" if late.more else ""


def meanwhile_sentence(late: Straggler, causes: Causes) -> str:
    """What a late rank did while others waited."""
    return f"while they waited: {reasons(late.meanwhile, causes)}" if late.meanwhile else ""


def reasons(times: dict[str, int], causes: Causes) -> str:
    """Times by work or cause, most first, with their shares: `Host code 1.20 s (80.0%), Compute 300 ms (20.0%)`."""
    whole = sum(times.values())
    rows = [(share_of(name, ns, causes).label, ns) for name, ns in by_time(times)]
    shown = [row for at, row in enumerate(rows[:MOST_REASONS]) if not at or row[1] >= LEAST_REASON * whole]
    told = [f"{label} {format_ns(ns)} ({format_share(ns, whole)})" for label, ns in shown]
    rest = sum(ns for _, ns in rows[len(shown) :])
    return ", ".join([*told, *([f"{format_ns(rest)} of others"] if rest else [])]) or "nothing known"


def ranks_label(ranks: list[str]) -> str:
    """Ranks by name; of many the first ones and a number."""
    more = f" and {len(ranks) - MOST_RANKS:,} more" if len(ranks) > MOST_RANKS else ""
    return ", ".join(ranks[:MOST_RANKS]) + more


def clock_sentence(found: RankComparison) -> str:
    """How the clocks were brought together, with the error of it."""
    if found.clock_error_ns is None:
        return f"Clocks: {found.clock}; their offset is unknown, so late ranks are not reported across them."
    several = len({row.file for row in found.ranks}) > 1
    error = f", give or take {format_ns(found.clock_error_ns)}" if found.clock_error_ns or several else ""
    return f"Clocks: {found.clock}{error}."


# The tables of a comparison of ranks.


def _listed(times: dict[str, int]) -> str:
    return ";".join(f"{name}:{ns}" for name, ns in by_time(times))


RANK_COLUMNS = columns(
    RankRow,
    """
    device rank file offset_ns offset_error_ns span_start_ns span_ns compute_ns exposed_comm_ns exposed_copy_ns idle_ns
    collectives matched transfer_ns wait_ns late late_ns caused_ns drift_ppm
    """,
)
_TABLES: tuple[RecordTable[RankComparison, Any], ...] = (
    RecordTable("ranks", RANK_COLUMNS, lambda found: found.ranks),
    RecordTable(
        "collectives",
        (
            *columns(CollectiveGroup, "kind communicator"),
            RecordColumn[CollectiveGroup]("ranks", "text", lambda group: ";".join(group.ranks)),
            *columns(CollectiveGroup, "count transfer_ns wait_ns spread_ns late"),
        ),
        lambda found: found.groups,
    ),
    RecordTable(
        "stragglers",
        (
            *columns(Straggler, "rank late of late_ns caused_ns worst_start_ns worst_ns confidence"),
            RecordColumn[Straggler]("more_ns", "text", lambda late: _listed(late.more)),
            RecordColumn[Straggler]("meanwhile_ns", "text", lambda late: _listed(late.meanwhile)),
        ),
        lambda found: found.stragglers,
    ),
    RecordTable(
        "waits",
        (
            *columns(RankWait, "rank late_rank wait_ns"),
            RecordColumn[RankWait]("causes_ns", "text", lambda wait: _listed(wait.causes)),
        ),
        lambda found: found.waits,
    ),
)
BY_NAME = {table.name: table for table in _TABLES}
