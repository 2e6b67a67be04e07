"""The page of a history: for each trace and GPU how long an iteration took, and why the GPU was idle, run by run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.axis import MOST_TICKS, time_levels
from nsysdiag.document.bars import Bar, BarChart, draw_bars
from nsysdiag.document.names import clip, visible
from nsysdiag.document.view import Causes, Share, by_time, share_of
from nsysdiag.document.words import counted
from nsysdiag.formats.batch.history import (
    FEWEST_SLOTS,
    Label,
    LineChart,
    draw_line,
    idle_share,
    labels,
    moment,
    series,
    share_levels,
)
from nsysdiag.formats.batch.index import framed
from nsysdiag.formats.batch.rows import rows, shown_name
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import BatchSummary, HistoryLine
    from nsysdiag.report import CauseInfo

MOST_SERIES, MOST_POINTS, MOST_OF_ALL, FEWEST_POINTS = 100, 300, 3000, 20
MOST_ROWS = 30
UNFOLDED = 3
TOP_CAUSES = 6
OTHER = "other"
SCALE = 1_000_000
"""Shares are drawn as whole parts of a million."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the table shows it."""

    line: HistoryLine
    name: str
    at: str
    idle: float
    idle_text: str
    causes: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Trend:
    """One trace and GPU over its runs; a chart is None where no run has what it shows. `before` is the run before the
    last one."""

    anchor: str
    name: str
    device: str
    count: int
    sentence: str
    iteration: LineChart | None
    idle: LineChart
    causes: BarChart | None
    labels: list[Label]
    runs: list[Run]
    last: Run
    before: Run | None


def render(summary: BatchSummary, history: Sequence[HistoryLine], causes: Sequence[CauseInfo] = ()) -> bytes:
    """The whole page as UTF-8."""
    runs = series(history)
    # Those of this batch, the worst first; then those that only earlier runs had.
    here = [(row.entry.input, row.device.key) for row in rows(summary) if row.device]
    now = [key for key in here if key in runs]
    order = [*now, *sorted(runs.keys() - set(now))]
    shown = order[:MOST_SERIES]
    points = max(FEWEST_POINTS, min(MOST_POINTS, MOST_OF_ALL // max(len(shown), 1)))
    known = Causes(causes)
    trends = [_trend(at, key, runs[key], points, known) for at, key in enumerate(shown)]
    count = len({(each.line.at, each.line.run) for trend in trends for each in trend.runs})
    notes = [f"Charts show the latest {points:,} runs of each."] if any(t.count > points for t in trends) else []
    if any(trend.count > len(trend.runs) for trend in trends):
        notes.append(f"Tables show the latest {MOST_ROWS} runs of each.")
    return framed(
        "trend.html",
        summary,
        trends=trends,
        unfolded=UNFOLDED,
        left_out=len(order) - len(shown),
        notes=notes,
        headline=f"{counted(len(order), 'trace and GPU', 'traces and GPUs')} over {counted(count, 'run')}.",
    )


def _trend(at: int, key: tuple[str, str], every: list[HistoryLine], points: int, causes: Causes) -> Trend:
    lines = every[-points:]
    runs = [_run(line, causes) for line in reversed(every[-MOST_ROWS:])]
    names = [_name(line) for line in lines]
    return Trend(
        anchor=f"t-{at}",
        name=shown_name(key[0]),
        device=key[1],
        count=len(every),
        sentence=_sentence(every),
        iteration=_iterations(lines, names),
        idle=_idle(lines, names),
        causes=_causes(lines, names, causes),
        labels=labels(names),
        runs=runs,
        last=runs[0],
        before=runs[1] if len(runs) > 1 else None,
    )


def _name(line: HistoryLine) -> str:
    return visible(line.run).strip() or moment(line)


def _run(line: HistoryLine, causes: Causes) -> Run:
    top = [(clip(causes.title(id), 60), format_share(ns, line.window_ns)) for id, ns in by_time(line.causes)[:3] if ns]
    return Run(line, _name(line), moment(line), idle_share(line), format_share(line.idle_ns, line.window_ns), top)


def _sentence(every: list[HistoryLine]) -> str:
    """The last run beside the one before."""
    last = every[-1]
    now = f"Idle {format_share(last.idle_ns, last.window_ns)}"
    now += f", an iteration {format_ns(last.iteration_ns)}" if last.iteration_ns is not None else ""
    if len(every) == 1:
        return f"{now}, in the only run."
    before = every[-2]
    then = f"idle {format_share(before.idle_ns, before.window_ns)}"
    then += f", {format_ns(before.iteration_ns)}" if before.iteration_ns is not None else ""
    return f"{now} in the last run; before it {then}."


def _iterations(lines: list[HistoryLine], names: list[str]) -> LineChart | None:
    values = [line.iteration_ns for line in lines]
    top = max((value for value in values if value is not None), default=0)
    if top <= 0:
        return None
    texts = [f"{name}: {format_ns(v) if v is not None else 'not known'}" for name, v in zip(names, values, strict=True)]
    top = round(top * 1.1)
    return draw_line(values, top, time_levels(top, MOST_TICKS), texts)


def _idle(lines: list[HistoryLine], names: list[str]) -> LineChart:
    values: list[int | None] = [round(idle_share(line) * SCALE) for line in lines]
    texts = [f"{name}: {format_share(line.idle_ns, line.window_ns)}" for name, line in zip(names, lines, strict=True)]
    top = _ceiling(max(value or 0 for value in values))
    return draw_line(values, top, share_levels(top, SCALE), texts)


def _ceiling(highest: int) -> int:
    """What fills the height of a chart of shares: a little more than the highest, never next to nothing."""
    return max(SCALE // 20, round(1.1 * highest))


def _causes(lines: list[HistoryLine], names: list[str], causes: Causes) -> BarChart | None:
    """Bars of the idle share by cause: those with the largest shares in all runs together, and all others as one."""
    total: dict[str, float] = {}
    for line in lines:
        for id, ns in line.causes.items():
            total[id] = total.get(id, 0.0) + (ns / line.window_ns if line.window_ns > 0 else 0.0)
    top = sorted(total, key=lambda id: (-total[id], id))[:TOP_CAUSES]
    bars = []
    for name, line in zip(names, lines, strict=True):
        whole = max(line.window_ns, 1)
        found = [share_of(id, round(SCALE * line.causes.get(id, 0) / whole), causes) for id in top]
        shares = [each for each in found if each.ns > 0]
        rest = sum(ns for id, ns in line.causes.items() if id not in top)
        if rest > 0:
            shares.append(Share(OTHER, "All other causes", round(SCALE * rest / whole), "idle", ""))
        parts = ", ".join(f"{share.label} {format_share(share.ns, SCALE)}" for share in shares)
        text = f"{name}: {parts or 'no idle time'}"
        bars.append(Bar(sum(share.ns for share in shares), shares, text, slow=False, faded=False))
    highest = max((bar.total for bar in bars), default=0)
    if highest <= 0:
        return None
    ceiling = _ceiling(highest)
    return draw_bars(bars, ceiling, share_levels(ceiling, SCALE), fewest=FEWEST_SLOTS)
