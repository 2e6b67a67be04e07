"""Utilization: what a dashboard shows of the device, what it did, and how much of the chip its kernels fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nsysdiag.document.blocks import (
    PAGE,
    Block,
    Cell,
    Chart,
    Column,
    Fact,
    Facts,
    Limit,
    Lines,
    Paragraph,
    Section,
    Table,
)
from nsysdiag.document.kinds import BYTES, COUNT, NAME, RATIO, SHARE, TEXT, TIME
from nsysdiag.document.words import instant
from nsysdiag.units import capitalized, format_count
from nsysdiag.utilization.chart import draw_utilization
from nsysdiag.utilization.words import ESTIMATED, METHOD, percent_of, sm_sentences, utilization_sentences

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.report import DeviceReport
    from nsysdiag.utilization.facts import KernelShape, Utilization

MAX_ROWS, TOP_ROWS, FIRST_ROWS, MAX_SPOTS = 50, 5, 10, 125
SOURCES = {"estimate": "SM activity, estimated", "gpu-metrics": "SM activity, measured"}
SHAPE = "those of the shape with most time"


def section(device: DeviceReport, context: Context) -> Section | None:
    """None without a window."""
    found = device.utilization
    if found.util_time_share is None:
        return None
    notes = [*sm_sentences(found), *(f"{capitalized(note)}." for note in found.notes)]
    return Section(
        "utilization",
        "Utilization",
        [
            *([Paragraph(found.sentence, tone="strong", limit=PAGE)] if found.sentence else []),
            Lines(utilization_sentences(device), Limit(page=0, brief=1)),
            Facts(_facts(found), PAGE),
            Lines(notes, PAGE),
            *_over_time(device, context),
            Paragraph(METHOD, tone="quiet", limit=PAGE),
            *_shapes(found, context),
        ],
    )


def _facts(found: Utilization) -> list[Fact]:
    return [
        Fact("Utilization by time", found.util_time_share, SHARE),
        Fact("By polling", found.util_period_share, SHARE),
        Fact("Busy", found.busy_share, SHARE),
        Fact("Computing", found.compute_share, SHARE),
        Fact("Exposed communication", found.exposed_comm_share, SHARE),
        Fact("Exposed copies", found.exposed_copy_share, SHARE),
        Fact("Idle", found.idle_share, SHARE),
        Fact(SOURCES.get(found.sm_source or "", "SM activity"), found.sm_active_share, SHARE),
        Fact("SM capacity filled, estimated", found.estimate.resident_share, SHARE),
        Fact("SM activity / utilization", found.efficiency, RATIO),
    ]


def _over_time(device: DeviceReport, context: Context) -> list[Block]:
    found, end = device.utilization, device.window.end_ns
    drawing = draw_utilization(found, end, context.rows(MAX_SPOTS))
    if drawing is None or found.by_time is None:
        return []
    by_time = found.by_time
    spread = f"in samples from {percent_of(by_time.lowest)} to {percent_of(by_time.highest)}"
    label = (
        f"Utilization from {instant(by_time.start_ns)} to {instant(end)}: {percent_of(found.util_time_share)} by time, "
        f"{spread}; {percent_of(found.util_period_share)} by polling"
    )
    return [Chart(drawing, label)]


def _shapes(found: Utilization, context: Context) -> list[Block]:
    """How much of the chip kernels fill; what depends on the size of the chip only where the trace tells it."""
    rows = found.kernels[: context.rows(MAX_ROWS)]
    if not rows:
        return []
    sized = any(row.blocks_per_sm is not None or row.resident_share is not None for row in rows)
    fields = _fields(sized)
    ticket = TOP_ROWS if any(row.sm_share is not None for row in rows) else 0
    return [
        Table(
            "How much of the chip kernels fill, by launch shape",
            [column for column, _get in fields],
            [[get(row) for _column, get in fields] for row in rows],
            note=_note(sized),
            noun="kernels",
            order="with most time",
            total=len(found.kernels),
            first=FIRST_ROWS,
            limit=Limit(ticket=ticket, summary=0, brief=0),
        ),
        Lines([ESTIMATED], PAGE),
    ]


def _fields(sized: bool) -> list[tuple[Column, Callable[[KernelShape], object]]]:
    chip: list[tuple[Column, Callable[[KernelShape], object]]] = [
        (Column("An SM holds", COUNT, limit=PAGE), lambda row: row.blocks_per_sm),
        (Column("Waves", RATIO), lambda row: row.waves),
        (Column("Capacity filled", SHARE), lambda row: row.resident_share),
        (Column("Limited by", TEXT, length=40), lambda row: row.limit or None),
    ]
    return [
        (Column("Total", TIME, strong=True), lambda row: row.total_ns),
        (Column("Runs", COUNT), lambda row: row.count),
        (Column("Blocks", COUNT), lambda row: row.blocks),
        (Column("Threads", COUNT), lambda row: row.threads),
        (Column("Registers", COUNT, limit=PAGE), lambda row: row.registers),
        (Column("Shared", BYTES, limit=PAGE), lambda row: row.shared_bytes),
        (Column("SMs with work (estimated)", SHARE), lambda row: row.sm_share),
        *(chip if sized else []),
        (
            Column("Kernel", NAME, head=True, length=60),
            lambda row: Cell(row.short_name, tag=f"{format_count(row.shapes)} shapes" if row.shapes > 1 else ""),
        ),
    ]


def _note(sized: bool) -> str:
    if not sized:
        return (
            f"Threads of a block, registers of a thread and shared memory of a block are {SHAPE}. SMs: the share of "
            "them that have a block, weighted by time. The trace does not show how many blocks an SM holds."
        )
    return (
        "Threads of a block, registers of a thread, shared memory of a block and the blocks that an SM holds are "
        f"{SHAPE}. SMs: the share of them that have a block; capacity: the share of the blocks that all SMs could "
        "hold; both weighted by time."
    )
