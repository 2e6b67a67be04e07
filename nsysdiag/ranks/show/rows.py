"""The tables of a comparison of ranks."""

from __future__ import annotations

from typing import Any

from nsysdiag.document.columns import RecordColumn, RecordTable, columns
from nsysdiag.document.view import by_time
from nsysdiag.ranks.facts import CollectiveGroup, RankComparison, RankRow, RankWait, Straggler


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
