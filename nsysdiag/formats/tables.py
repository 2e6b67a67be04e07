"""All tables of a report, in the order in which they are written: the one source of CSV files and data frames.

Tables about devices begin with the device. The unit of a number is in the name of its column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nsysdiag.cost import show as cost
from nsysdiag.counters import show as counters
from nsysdiag.critical_path import show as critical_path
from nsysdiag.document.columns import Cell, RecordColumn, RecordTable, columns, of_devices, part
from nsysdiag.document.names import call_site_label, host_code_label, visible, whole
from nsysdiag.document.view import Causes, by_length, by_time, ledger_rows, slices_by_time
from nsysdiag.document.words import path_label
from nsysdiag.findings.show import FACTS, JUDGED
from nsysdiag.formats import RenderOptions
from nsysdiag.host import show as host
from nsysdiag.iterations.facts import Iteration, ServingPhase
from nsysdiag.kernels import show as kernels
from nsysdiag.kernels.facts import CollectiveKind, FamilyTime, KernelRow, MpiCall
from nsysdiag.launches import words as launches
from nsysdiag.memory import show as memory
from nsysdiag.phases.facts import Phase, PhaseDevice
from nsysdiag.ranges import show as ranges
from nsysdiag.ranks.show.blocks import BY_NAME as RANK_TABLES
from nsysdiag.ranks.show.blocks import RANK_COLUMNS
from nsysdiag.report import CauseInfo, DeviceReport, Gap, Report, SignatureRow, Slice
from nsysdiag.time.facts import STATES
from nsysdiag.utilization import show as utilization


class _GapRow(NamedTuple):
    """A gap with its slices, longest first, and its dominant cause."""

    device: DeviceReport
    gap: Gap
    slices: list[Slice]
    cause: CauseInfo | None


class _CauseRow(NamedTuple):
    """The idle time of one cause on a device; `root_ns` after wake-ups were followed."""

    device: DeviceReport
    cause: CauseInfo
    ns: int
    root_ns: int


class _LabelRow(NamedTuple):
    """The idle time of one label of a cause."""

    cause: str
    label: str
    idle_ns: int
    root_idle_ns: int


class _SumRow(NamedTuple):
    """The time of a device that has a `name` in a column of the table of time, within one scope. `share_of_scope` is
    its part of that."""

    device: str
    scope: str
    column: str
    name: str
    ns: int
    share_of_scope: float | None


class _PhaseRow(NamedTuple):
    """What one device did in the phase number `phase`."""

    phase: int
    of: Phase
    device: PhaseDevice


def _phases(report: Report) -> Iterator[_PhaseRow]:
    for at, phase in enumerate(report.phases):
        yield from (_PhaseRow(at, phase, device) for device in phase.devices)


def _sums(report: Report) -> Iterator[_SumRow]:
    """The sums of states, bottlenecks and causes of each device: over the judged time, then phase by phase."""
    for device in report.devices:
        for scope, found in _scopes(report, device.key):
            states = {name: getattr(found, f"{name}_ns") for name in STATES}
            whole = sum(found.account.values())
            for column, sums in (("state", states), ("bottleneck", found.account), ("cause", found.ledger)):
                for name, ns in by_time(sums):
                    yield _SumRow(device.key, scope, column, name, ns, part(ns, whole))


def _scopes(report: Report, key: str) -> Iterator[tuple[str, PhaseDevice]]:
    judged = report.judged_of(key)
    if judged is not None:
        yield JUDGED, judged
    for at, phase in enumerate(report.phases):
        yield from ((f"phase {at}", each) for each in phase.devices if each.key == key)


def _gaps(report: Report) -> Iterator[_GapRow]:
    causes = Causes(report.causes)
    for device in report.devices:
        for gap in by_length(device.gaps):
            slices = slices_by_time(gap)
            yield _GapRow(device, gap, slices, causes[slices[0].cause] if slices else None)


def _ledger(report: Report) -> Iterator[_CauseRow]:
    causes = Causes(report.causes)
    for device in report.devices:
        yield from (_CauseRow(device, row.cause, row.ns, row.root_ns) for row in ledger_rows(device, causes))


def _labels(device: DeviceReport) -> Iterator[_LabelRow]:
    for cause in sorted({*device.labels, *device.root_labels}):
        here, root = device.labels.get(cause, {}), device.root_labels.get(cause, {})
        for label in sorted({*here, *root}):
            yield _LabelRow(cause, label, here.get(label, 0), root.get(label, 0))


def _listed(ledger: dict[str, int]) -> str:
    """Times by cause in one cell, most first: `sync:500;dispatch:20`."""
    return ";".join(f"{cause}:{ns}" for cause, ns in by_time(ledger))


_GAPS = (
    *columns(_GapRow, "device=device.key start_ns=gap.start_ns end_ns=gap.end_ns"),
    RecordColumn[_GapRow]("length_ns", "integer", lambda row: row.gap.end_ns - row.gap.start_ns),
    *columns(_GapRow, "cause=cause.id cause_title=cause.title"),
    RecordColumn[_GapRow]("slices_ns", "text", lambda row: ";".join(f"{each.cause}:{each.ns}" for each in row.slices)),
    RecordColumn[_GapRow](
        "evidence", "text", lambda row: "; ".join(each.evidence for each in row.slices if each.evidence)
    ),
    *columns(_GapRow, "process_id=gap.thread.pid thread_id=gap.thread.tid thread_name=gap.thread.name"),
    *columns(_GapRow, "previous_op=gap.previous_op.name next_op=gap.next_op.name"),
    RecordColumn[_GapRow]("nvtx", "text", lambda row: path_label(row.gap.nvtx)),
    *columns(_GapRow, "sync_drained=gap.sync_drained confidence=gap.confidence root_cause=gap.root.cause"),
    RecordColumn[_GapRow]("root_chain", "text", lambda row: " ← ".join(row.gap.root.chain) if row.gap.root else None),
    *columns(_GapRow, "root_confidence=gap.root.confidence"),
    RecordColumn[_GapRow]("call_site", "text", lambda row: call_site_label(row.gap.call_site, whole)),
    RecordColumn[_GapRow]("nvtx_elsewhere", "text", lambda row: path_label(row.gap.nvtx_elsewhere)),
)
WINDOW = "window"
"""The time that a table adds up, if it is not what the diagnosis is about (JUDGED)."""


def _scoped(shown: tuple[RecordColumn[Any], ...], scope: str) -> tuple[RecordColumn[Any], ...]:
    """The columns, and behind them the time that their sums are of."""
    return (*shown, RecordColumn[Any]("scope", "text", lambda _: scope))


_DEVICES = """
    name window_start_ns=window.start_ns window_end_ns=window.end_ns window_ns busy_ns compute_ns exposed_comm_ns
    exposed_copy_ns idle_ns coverage verdict=verdict.id gap_count kernels=ops.kernel memcpys=ops.memcpy
    memsets=ops.memset graphs=ops.graph
"""
_LEDGER = (
    *columns(_CauseRow, "device=device.key cause=cause.id title=cause.title idle_ns=ns root_idle_ns=root_ns"),
    RecordColumn[_CauseRow]("share_of_idle", "number", lambda row: part(row.ns, row.device.idle_ns)),
    RecordColumn[_CauseRow]("share_of_window", "number", lambda row: part(row.ns, row.device.window_ns)),
)
_KERNELS = columns(KernelRow, "short_name name count total_ns mean_ns median_ns min_ns max_ns communication")
_FAMILIES = (
    *columns(FamilyTime, "family count total_ns share names step_count step_ns"),
    *columns(FamilyTime, "limit measured_ns sm_active sm_issue tensor_active dram_active"),
    RecordColumn[FamilyTime]("kernels", "text", lambda row: "; ".join(each.name for each in row.kernels)),
)
_SIGNATURE_NUMBERS = """
    cause count total_ns median_ns max_ns representative_start_ns representative_index p95_ns per_iteration_ns
    share_of_idle
"""
_SIGNATURES = (
    *columns(SignatureRow, "id previous_op next_op"),
    RecordColumn[SignatureRow]("nvtx", "text", lambda row: path_label(row.nvtx)),
    *columns(SignatureRow, _SIGNATURE_NUMBERS),
    RecordColumn[SignatureRow]("call_site", "text", lambda row: call_site_label(row.call_site, whole)),
    RecordColumn[SignatureRow]("host_code", "text", lambda row: host_code_label(row.host_code, whole)),
)
_ITERATIONS = (
    *columns(Iteration, "iteration=index start_ns end_ns"),
    RecordColumn[Iteration]("length_ns", "integer", lambda row: row.end_ns - row.start_ns),
    *columns(Iteration, "compute_ns exposed_comm_ns exposed_copy_ns"),
    RecordColumn[Iteration]("idle_ns", "integer", lambda row: sum(row.ledger.values())),
    RecordColumn[Iteration]("ledger_ns", "text", lambda row: _listed(row.ledger)),
    *columns(Iteration, "steady"),
)
_SERVING = (
    *columns(ServingPhase, "phase shown_by count median_ns total_ns share tokens"),
    RecordColumn[ServingPhase]("ledger_ns", "text", lambda row: _listed(row.idle)),
)
_PHASE_NUMBERS = """
    start_ns=of.start_ns end_ns=of.end_ns judged=of.judged bottleneck=of.bottleneck share=of.share steps=of.steps.count
    step_median_ns=of.steps.median_ns step_mean_ns=of.steps.mean_ns compute_ns=device.compute_ns
    exposed_comm_ns=device.exposed_comm_ns exposed_copy_ns=device.exposed_copy_ns idle_ns=device.idle_ns
    outside_ns=device.outside_ns
"""
_PHASES = (
    *columns(_PhaseRow, "device=device.key phase"),
    RecordColumn[_PhaseRow]("name", "text", lambda row: row.of.name),
    *columns(_PhaseRow, _PHASE_NUMBERS),
)
_TABLES: tuple[RecordTable[Report, Any], ...] = (
    RecordTable("gaps", _GAPS, _gaps),
    of_devices("devices", _scoped(columns(DeviceReport, _DEVICES), WINDOW), lambda device: [device]),
    RecordTable("ledger", _scoped(_LEDGER, WINDOW), _ledger),
    of_devices("labels", _scoped(columns(_LabelRow), WINDOW), _labels),
    RecordTable("time_sums", columns(_SumRow), _sums),
    of_devices("kernels", _scoped(_KERNELS, WINDOW), "kernels"),
    of_devices("kernel_families", _scoped(_FAMILIES, JUDGED), "kernel_families"),
    *memory.TABLES,
    of_devices("communication", _KERNELS, "communication.kernels"),
    of_devices("collectives", columns(CollectiveKind), "communication.kinds"),
    *kernels.TABLES,
    of_devices("mpi", columns(MpiCall), "communication.mpi"),
    RecordTable("ranks", RANK_COLUMNS, lambda report: report.ranks.ranks if report.ranks else ()),
    of_devices("signatures", _scoped(_SIGNATURES, WINDOW), "signatures"),
    of_devices("ranges", _scoped(ranges.TABLE, WINDOW), "ranges.rows"),
    ranges.FLAME_TABLE,
    *critical_path.TABLES,
    RecordTable("phases", _PHASES, _phases),
    of_devices("iterations", _ITERATIONS, "iterations.rows"),
    of_devices("serving", _SERVING, "iterations.serving"),
    *launches.TABLES,
    *host.TABLES,
    *cost.TABLES,
    *utilization.TABLES,
    *counters.TABLES,
    RecordTable("findings", tuple(fact.column for fact in FACTS), lambda report: report.findings),
)
BY_NAME = {table.name: table for table in _TABLES}


# The report's tables as CSV (RFC 4180, UTF-8): plain numbers, the unit in the name of the column.
#
# Text that a spreadsheet would take for a formula gets a leading apostrophe. With another separator than the comma in
# the locale, a cell such as `a;=1+1` is split even if quoted: a part that would be a formula gets an apostrophe too.

# Full-width forms and white space in front do not stop every spreadsheet from seeing a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Behind a separator of some locale, a quote may still open the cell that begins there.
_FORMULA = re.compile(r'(^|[;|])(?=[ "]*[-=+@＝＋－＠])')
_QUOTED = re.compile(r'[",;|\t\r\n]')
MAIN_TABLE = "gaps"
TABLES = tuple(name for name in BY_NAME if name != MAIN_TABLE)


def render(report: Report, _options: RenderOptions) -> bytes:
    """The gaps table: one row a gap, the longest of each device first."""
    return tables(report, [MAIN_TABLE])[MAIN_TABLE]


def tables(report: Report, names: Iterable[str] = BY_NAME.keys()) -> dict[str, bytes]:
    """Tables by name, all of them unless `names` are given; `gaps` is the one that `render` gives."""
    return {name: csv_of(BY_NAME[name].header, BY_NAME[name].cells(report)) for name in names}


def table_path(path: Path, table: str) -> Path:
    """The path of a table other than the gaps, next to `x.csv`: `x.TABLE.csv`."""
    return path.with_name(f"{path.stem}.{table}{path.suffix}")


def is_ours(data: bytes) -> bool:
    """Is the first row exactly the header of one of our tables?"""
    first = data.split(b"\r\n", 1)[0]
    headers = [table.header for table in BY_NAME.values()] + [table.header for table in RANK_TABLES.values()]
    return any(first == ",".join(header).encode() for header in headers)


def csv_of(header: list[str], rows: Iterable[list[Cell]]) -> bytes:
    """One table. A cell with the separator of any locale is quoted, which the csv module does for one separator."""
    lines = [header, *([_cell(value) for value in row] for row in rows)]
    return "".join(f"{','.join(map(_quoted, line))}\r\n" for line in lines).encode()


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    return str(value)


def _text(value: str) -> str:
    shown = _FORMULA.sub(r"\1'", visible(value))
    control = value.lstrip(" ").startswith(FORMULA_STARTS) and not shown.startswith("'")  # written out by now
    return f"'{shown}" if control else shown
