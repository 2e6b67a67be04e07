"""Utilization: what a dashboard shows of the device, what it did, and how much of the chip its kernels fill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.document import blocks as b
from nsysdiag.document.columns import BYTES, COUNT, NAME, RATIO, SHARE, TEXT, TIME, columns, of_devices
from nsysdiag.document.drawings import Curve, CurveLayer, TimeSeries
from nsysdiag.document.view import Context, mostly_graphs
from nsysdiag.document.words import instant
from nsysdiag.units import capitalized, format_count, format_ns
from nsysdiag.utilization.facts import KernelShape, Utilization, UtilizationSeries

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


MOST_STEPS = 500


def utilization_curve(found: Utilization, end_ns: int, hovers: int) -> Curve | None:
    """The share by time and by polling up to `end_ns`; None if there is one step alone, or nothing at all."""
    by_time, by_period = found.by_time, found.by_period
    if by_time is None or by_period is None or len(by_time.values) < 2 or end_ns <= by_time.start_ns:
        return None
    return Curve(
        [
            CurveLayer(f"by time (samples of {format_ns(by_time.period_ns)})", "area", _series(by_time, end_ns)),
            CurveLayer(f"by polling (every {format_ns(by_period.period_ns)})", "line", _series(by_period, end_ns)),
        ],
        "Utilization",
        SHARE,
        1,
        {"50%": 0.5, "100%": 1},
        hovers=hovers,
    )


def _series(series: UtilizationSeries, end_ns: int) -> TimeSeries:
    """The steps inside the window; if they are more than can be seen, the means of several."""
    together = -(-len(series.values) // MOST_STEPS)
    values = [_mean(series.values[at : at + together]) for at in range(0, len(series.values), together)]
    starts = [series.start_ns + at * together * series.step_ns for at in range(len(values))]
    return TimeSeries([*starts, min(starts[-1] + together * series.step_ns, end_ns)], values)


def _mean(values: list[float | None]) -> float | None:
    held = [value for value in values if value is not None]
    return sum(held) / len(held) if held else None


# The tables about utilization.


class _Step(NamedTuple):
    """A step of a series that is in the window."""

    series: str
    start_ns: int
    end_ns: int
    share: float


def _steps(device: DeviceReport) -> Iterator[_Step]:
    for name, series in (("by_time", device.utilization.by_time), ("by_period", device.utilization.by_period)):
        for at, share in enumerate(series.values if series else ()):
            if series is not None and share is not None:
                start = series.start_ns + at * series.step_ns
                yield _Step(name, start, min(start + series.step_ns, device.window.end_ns), share)


_UTILIZATION = """
    util_time_share util_period_share busy_share compute_share exposed_comm_share exposed_copy_share idle_share
    sm_active_share efficiency estimated_sm_active_share=estimate.sm_active_share
    estimated_sm_active_at_most=estimate.sm_active_at_most estimated_resident_share=estimate.resident_share
    estimate_covered_share=estimate.covered_share sm_source sentence
    flops_per_step=flops.flops_per_step flops_per_second=flops.flops_per_second precision=flops.precision
    peak_flops_per_second=flops.peak_flops_per_second flop_share=flops.share
"""
_SHAPES = """
    short_name name count total_ns shapes blocks threads registers shared_bytes blocks_per_sm waves sm_share
    resident_share limit
"""
TABLES = (
    of_devices("utilization", columns(Utilization, _UTILIZATION), "utilization"),
    of_devices("utilization_series", columns(_Step), _steps),
    of_devices("kernel_shapes", columns(KernelShape, _SHAPES), "utilization.kernels"),
)


# What is to be said about the utilization of a device, in sentences; nothing without a window.

ESTIMATE = "estimate"
METHOD = (
    "By time follows NVML's utilization.gpu: the share of a sample period in which at least one kernel was executing, "
    "whatever its size. Copies do not count. By polling is the share of short periods in which any kernel ran. Both "
    "count only the captured programs."
)
IN_GRAPHS = "computing or in CUDA graphs recorded as a whole {}: what runs inside these is not in the trace"
ESTIMATED = (
    "Estimated from launch shapes: the blocks that an SM holds, by warps, blocks, registers and shared memory, and the "
    "waves of a grid. The estimate assumes equal waves, evenly distributed blocks, and concurrent kernels on different "
    "SMs. The real SM activity may be lower."
)


def utilization_sentences(device: DeviceReport) -> list[str]:
    """The headline, both ways to read a dashboard, and the SMs."""
    found = device.utilization
    if found.util_time_share is None:
        return []
    lines = [found.sentence] if found.sentence else []
    by_time, by_period = found.by_time, found.by_period
    if by_time is not None and by_period is not None:
        spread = f"{SHARE.text(by_time.lowest)} to {SHARE.text(by_time.highest)}"
        samples = f" (samples of {format_ns(by_time.period_ns)}: {spread})" if by_time.lowest < by_time.highest else ""
        polled = f"by polling every {format_ns(by_period.period_ns)} {SHARE.text(found.util_period_share)}"
        computing = IN_GRAPHS if mostly_graphs(device) else "computing {}"
        rest = f"busy {SHARE.text(found.busy_share)}, {computing.format(SHARE.text(found.compute_share))}"
        lines.append(f"Utilization by time {SHARE.text(found.util_time_share)}{samples}, {polled}; {rest}.")
    return lines + sm_sentences(found)


def sm_sentences(found: Utilization) -> list[str]:
    """What is known about SM activity, or why nothing is; nothing if no kernel ran."""
    if not found.util_time_share:
        return []
    estimate = found.estimate
    if found.sm_source is None:
        covered = f" It is known of {SHARE.text(estimate.covered_share)} of the kernels' time." * bool(
            estimate.covered_share
        )
        return [f"SM activity is unknown: {estimate.missing}.{covered}"] if estimate.missing else []
    if found.sm_source != ESTIMATE:
        beside = f"; launch shapes allow {SHARE.text(estimate.sm_active_share)}" if estimate.sm_active_share else ""
        return [f"SM activity {SHARE.text(found.sm_active_share)}, from GPU metrics{beside}."]
    least, most = estimate.sm_active_share, estimate.sm_active_at_most
    bounds = SHARE.text(least) if least == most else f"{SHARE.text(least)} to {SHARE.text(most)}"
    text = (
        f"SM activity {bounds}, an estimate from launch shapes: while a kernel runs, "
        f"{SHARE.text(estimate.sm_active_running)} of the SMs have work"
    )
    filled = f"the blocks fill {SHARE.text(estimate.resident_running)} of the capacity of all SMs"
    text += "." if estimate.resident_running is None else f", and {filled}."
    covered = f"It covers {SHARE.text(estimate.covered_share)} of the kernels' time: {estimate.missing}."
    return [text, covered] if estimate.missing else [text]


def real_note(found: Utilization) -> str:
    """The line below the figure of a dashboard: SM activity if known, else the figure of a poll."""
    if found.sm_active_share is not None and found.util_time_share:
        source = "estimated" if found.sm_source == ESTIMATE else "measured"
        return f"{SHARE.text(found.sm_active_share)} of SMs, {source}"
    return "" if found.util_period_share is None else f"{SHARE.text(found.util_period_share)} by polling"


MAX_ROWS, TOP_ROWS, FIRST_ROWS, MAX_HOVERS = 50, 5, 10, 125
SOURCES = {"estimate": "SM activity, estimated", "gpu-metrics": "SM activity, measured"}
SHAPE = "those of the shape with most time"


def section(device: DeviceReport, context: Context) -> b.Section | None:
    """None without a window."""
    found = device.utilization
    if found.util_time_share is None:
        return None
    notes = [*sm_sentences(found), *(f"{capitalized(note)}." for note in found.notes)]
    return b.Section(
        "utilization",
        "Utilization",
        [
            *([b.Paragraph(found.sentence, tone="strong", limit=b.PAGE)] if found.sentence else []),
            b.Lines(utilization_sentences(device), b.Limit(page=0, brief=1)),
            b.FigureRow(_facts(found), b.PAGE),
            b.Lines(notes, b.PAGE),
            *_over_time(device, context),
            b.Paragraph(METHOD, tone="quiet", limit=b.PAGE),
            *_shapes(found, context),
        ],
        f"{SHARE.text(found.util_time_share)} on a dashboard" + (f"; {note}" if (note := real_note(found)) else ""),
    )


def _facts(found: Utilization) -> list[b.Fact]:
    return [
        b.Fact("Utilization by time", found.util_time_share, SHARE),
        b.Fact("By polling", found.util_period_share, SHARE),
        b.Fact(SOURCES.get(found.sm_source or "", "SM activity"), found.sm_active_share, SHARE),
        b.Fact("SM capacity filled, estimated", found.estimate.resident_share, SHARE),
        b.Fact("SM activity / utilization", found.efficiency, RATIO),
        *([b.Fact("Of the peak of arithmetic", found.flops.share, SHARE)] if found.flops else []),
    ]


def _over_time(device: DeviceReport, context: Context) -> list[b.Block]:
    found, end = device.utilization, device.window.end_ns
    drawing = utilization_curve(found, end, context.rows(MAX_HOVERS))
    if drawing is None or found.by_time is None:
        return []
    by_time = found.by_time
    spread = f"in samples from {SHARE.text(by_time.lowest)} to {SHARE.text(by_time.highest)}"
    label = (
        f"Utilization from {instant(by_time.start_ns)} to {instant(end)}: {SHARE.text(found.util_time_share)} by time, "
        f"{spread}; {SHARE.text(found.util_period_share)} by polling"
    )
    return [b.Chart(drawing, label)]


def _shapes(found: Utilization, context: Context) -> list[b.Block]:
    """How much of the chip kernels fill; what depends on the size of the chip only if the trace tells it."""
    rows = found.kernels[: context.rows(MAX_ROWS)]
    if not rows:
        return []
    sized = any(row.blocks_per_sm is not None or row.resident_share is not None for row in rows)
    told = any(row.sm_share is not None for row in rows) and found.estimate.sm_active_share is not None
    ticket, covered = TOP_ROWS if told else 0, found.estimate.covered_share
    few = f" These kernels take {SHARE.text(covered)} of the kernels' time." if covered and not told else ""
    return [
        b.Table.of(
            "How much of the chip kernels fill, by launch shape",
            _columns(sized),
            rows,
            note=_note(sized) + few,
            noun="kernels",
            order="with most time",
            total=len(found.kernels),
            first=FIRST_ROWS,
            limit=b.Limit(ticket=ticket, summary=0, brief=0),
        ),
        b.Lines([ESTIMATED], b.PAGE),
    ]


def _columns(sized: bool) -> list[b.Column]:
    chip = [
        b.Column("An SM holds", COUNT, "blocks_per_sm", limit=b.PAGE),
        b.Column("Waves", RATIO, "waves"),
        b.Column("Capacity filled", SHARE, "resident_share"),
        b.Column("Limited by", TEXT, "limit", length=40),
    ]
    return [
        b.Column("Total", TIME, "total_ns", strong=True),
        b.Column("Runs", COUNT, "count"),
        b.Column("Blocks", COUNT, "blocks"),
        b.Column("Threads", COUNT, "threads"),
        b.Column("Registers", COUNT, "registers", limit=b.PAGE),
        b.Column("Shared", BYTES, "shared_bytes", limit=b.PAGE),
        b.Column("SMs with work (estimated)", SHARE, "sm_share"),
        *(chip if sized else []),
        b.Column("Kernel", NAME, _kernel, head=True, length=60),
    ]


def _kernel(row: KernelShape) -> b.Cell:
    return b.Cell(row.short_name, tag=f"{format_count(row.shapes)} shapes" if row.shapes > 1 else "")


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
