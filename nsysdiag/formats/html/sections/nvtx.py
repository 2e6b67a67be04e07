"""The NVTX ranges that were open on the launching thread when the device ran dry, by the idle time inside."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.context import Context
from nsysdiag.document.figures import Segment, stack
from nsysdiag.document.view import Causes, by_time
from nsysdiag.formats.html.sections.section import View, device_section

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, SignatureRow

MAX_ROWS, MAX_CAUSES = 50, 4


@dataclass(frozen=True, slots=True)
class RangeRow:
    """The gaps that began inside the ranges of one path: how many, their time, and the causes with most of it."""

    path: str
    count: int
    total_ns: int
    causes: list[str]
    segments: list[Segment]


def view(context: Context, device: DeviceReport) -> View | None:
    """The paths with the most idle time, from the recurring gaps; left out where none of them was inside a range."""
    if not any(row.nvtx for row in device.signatures):
        return None
    paths: dict[tuple[str, ...], list[SignatureRow]] = defaultdict(list)
    for row in device.signatures:
        paths[tuple(row.nvtx)].append(row)
    rows = [_row(path, inside, context.causes) for path, inside in paths.items()]
    rows.sort(key=lambda row: (-row.total_ns, row.path))
    return {
        "rows": rows[: context.rows(MAX_ROWS)],
        "all": len(rows),
        "covered_ns": sum(row.total_ns for row in rows),
        "signatures": len(device.signatures),
    }


def _row(path: tuple[str, ...], inside: list[SignatureRow], causes: Causes) -> RangeRow:
    times: dict[str, int] = defaultdict(int)
    for row in inside:
        times[row.cause] += row.total_ns
    longest = by_time(times)
    return RangeRow(
        path=words.path_label(list(path)),
        count=sum(row.count for row in inside),
        total_ns=sum(times.values()),
        causes=[causes.title(cause) for cause, _ns in longest[:MAX_CAUSES]],
        segments=stack((causes.title(cause), ns, causes[cause].color, "") for cause, ns in longest),
    )


section = device_section("nvtx", "NVTX ranges", view)
