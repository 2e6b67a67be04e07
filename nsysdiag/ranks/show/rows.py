"""The tables of a comparison as rows of plain values, for CSV files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.columns import Column, Rows, of

if TYPE_CHECKING:
    from nsysdiag.ranks.facts import RankComparison


@dataclass(frozen=True, slots=True)
class RankTable:
    """One table of a comparison; each row that `rows` gives has a cell for each of `columns`."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[RankComparison], Rows]

    @property
    def header(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]


def rank_rows(found: RankComparison) -> Rows:
    """One row a rank."""
    for row in found.ranks:
        yield (
            row.device,
            row.rank,
            row.file,
            row.offset_ns,
            row.offset_error_ns,
            row.span_start_ns,
            row.span_ns,
            row.compute_ns,
            row.exposed_comm_ns,
            row.exposed_copy_ns,
            row.idle_ns,
            row.collectives,
            row.matched,
            row.transfer_ns,
            row.wait_ns,
            row.late,
            row.late_ns,
            row.caused_ns,
            row.drift_ppm,
        )


def _groups(found: RankComparison) -> Rows:
    for group in found.groups:
        yield (
            group.kind,
            group.communicator,
            ";".join(group.ranks),
            group.count,
            group.transfer_ns,
            group.wait_ns,
            group.spread_ns,
            group.late,
        )


def _stragglers(found: RankComparison) -> Rows:
    for late in found.stragglers:
        yield (
            late.rank,
            late.late,
            late.of,
            late.late_ns,
            late.caused_ns,
            late.worst_start_ns,
            late.worst_ns,
            late.confidence,
            _listed(late.more),
            _listed(late.meanwhile),
        )


def _waits(found: RankComparison) -> Rows:
    for wait in found.waits:
        yield (wait.rank, wait.late_rank, wait.wait_ns, _listed(wait.causes))


def _listed(times: dict[str, int]) -> str:
    return ";".join(f"{name}:{ns}" for name, ns in sorted(times.items(), key=lambda item: (-item[1], item[0])))


RANK_COLUMNS = (
    *of("text", "device rank file"),
    *of("integer", "offset_ns"),
    *of("integer or none", "offset_error_ns"),
    *of("integer", "span_start_ns span_ns compute_ns exposed_comm_ns exposed_copy_ns idle_ns"),
    *of("integer", "collectives matched transfer_ns wait_ns late late_ns caused_ns"),
    *of("number", "drift_ppm"),
)
_TABLES = (
    RankTable("ranks", RANK_COLUMNS, rank_rows),
    RankTable(
        "collectives",
        (*of("text", "kind communicator ranks"), *of("integer", "count transfer_ns wait_ns spread_ns late")),
        _groups,
    ),
    RankTable(
        "stragglers",
        (
            *of("text", "rank"),
            *of("integer", "late of late_ns caused_ns worst_start_ns worst_ns"),
            *of("number", "confidence"),
            *of("text", "more_ns meanwhile_ns"),
        ),
        _stragglers,
    ),
    RankTable("waits", (*of("text", "rank late_rank"), *of("integer", "wait_ns"), *of("text", "causes_ns")), _waits),
)
BY_NAME = {table.name: table for table in _TABLES}
