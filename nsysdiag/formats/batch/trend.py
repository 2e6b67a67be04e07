"""The page of a history: for each trace and GPU how long an iteration took, and why the GPU was idle, run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.document.axis import MOST_TICKS, time_levels
from nsysdiag.document.blocks import Block, Chart, Column, Details, Document, Heading, Name, Paragraph, Section, Table
from nsysdiag.document.columns import CODE, COUNT, FIGURE, NAME, SHARE, TEXT, TIME, CellKind, share_of
from nsysdiag.document.drawings import Bar, BarChart, Curve, CurveLayer, TimeSeries
from nsysdiag.document.names import clip, visible
from nsysdiag.document.svg import FEWEST_NAMES
from nsysdiag.document.view import Causes, Share, by_time
from nsysdiag.document.view import share_of as some
from nsysdiag.document.words import counted
from nsysdiag.formats.batch.entries import rows, shown_name
from nsysdiag.formats.batch.summary import drawn, idle_share, link, moment, series, share_levels, time_cell
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import BatchSummary, HistoryLine
    from nsysdiag.report import CauseInfo

MOST_SERIES, MOST_POINTS, MOST_OF_ALL, FEWEST_POINTS = 100, 300, 3000, 20
MOST_ROWS = 30
UNFOLDED = 3
TOP_CAUSES = 6
CHIEF_CAUSES, MOST_CAUSE, MOST_TITLE = 3, 60, 120
SCALE = 1_000_000
"""Shares are drawn as whole parts of a million."""


class Trend(Struct, frozen=True):
    """One trace and GPU over its runs, the newest last; `points` is how many of them charts show."""

    anchor: str
    input: str
    device: str
    every: list[HistoryLine]
    points: int

    @property
    def name(self) -> str:
        """The trace as a link can show it."""
        return shown_name(self.input)

    @property
    def last(self) -> HistoryLine:
        """The newest run."""
        return self.every[-1]

    @property
    def before(self) -> HistoryLine | None:
        """The run before the newest."""
        return self.every[-2] if len(self.every) > 1 else None

    @property
    def drawn(self) -> list[HistoryLine]:
        """The runs in the charts."""
        return self.every[-self.points :]

    @property
    def listed(self) -> list[HistoryLine]:
        """The runs in the table."""
        return self.every[-MOST_ROWS:]


def render(summary: BatchSummary, history: Sequence[HistoryLine], causes: Sequence[CauseInfo] = ()) -> bytes:
    """The whole page as UTF-8."""
    return drawn(document(summary, history, Causes(causes)), summary)


def document(summary: BatchSummary, history: Sequence[HistoryLine], causes: Causes) -> Document:
    """The latest run of each trace and GPU and the one before, and a section for each of them."""
    runs = series(history)
    # Those of this batch, the worst first; then those that only earlier runs had.
    here = [(row.entry.input, row.device.key) for row in rows(summary) if row.device]
    now = [key for key in here if key in runs]
    order = [*now, *sorted(runs.keys() - set(now))]
    points = max(FEWEST_POINTS, min(MOST_POINTS, MOST_OF_ALL // max(min(len(order), MOST_SERIES), 1)))
    trends = [Trend(f"t-{at}", *key, runs[key], points) for at, key in enumerate(order[:MOST_SERIES])]
    sections = [
        Section("latest", "Latest run and the one before", _overview(trends, len(order))),
        *(_section(trend, causes, unfolded=at < UNFOLDED) for at, trend in enumerate(trends)),
    ]
    return Document("Traces over time", sections, [Name("All traces", href=link("index.html"))], contents=False)


def _overview(trends: Sequence[Trend], total: int) -> list[Block]:
    count = len({(line.at, line.run) for trend in trends for line in trend.listed})
    said = [f"{counted(total, 'trace and GPU', 'traces and GPUs')} over {counted(count, 'run')}."]
    if any(len(trend.every) > trend.points for trend in trends):
        said.append(f"Charts show the latest {trends[0].points:,} runs of each.")
    if any(len(trend.every) > MOST_ROWS for trend in trends):
        said.append(f"Tables show the latest {MOST_ROWS} runs of each.")
    left_out = [Paragraph(f"{total - len(trends):,} more are left out.", "note")] if total > len(trends) else []
    return [
        Paragraph(" ".join(said)),
        *left_out,
        Table.of(
            "The latest run of each trace and GPU, and the one before",
            (
                Column("Trace", NAME, lambda trend: Name(trend.name, href=f"#{trend.anchor}"), head=True, length=80),
                Column("GPU", CODE, "device", length=30),
                Column("Runs", COUNT, lambda trend: len(trend.every)),
                Column("Latest", TEXT, lambda trend: _name(trend.last), length=40),
                Column("Iteration", TIME, lambda trend: time_cell(trend.last.iteration_ns)),
                Column("Before", TIME, lambda trend: time_cell(trend.before.iteration_ns) if trend.before else None),
                Column("Idle", SHARE, lambda trend: _idle(trend.last)),
                Column("Before", SHARE, lambda trend: _idle(trend.before) if trend.before else None),
                Column("Budgets broken", COUNT, "last.broken"),
            ),
            trends,
            first=50,
        ),
    ]


def _section(trend: Trend, causes: Causes, *, unfolded: bool) -> Section:
    """The charts and runs of one trace and GPU, folded under the sentence that says where it stands."""
    sentence, names = _sentence(trend.every), [_name(line) for line in trend.drawn]
    runs = Table.of(
        "Runs, the newest first",
        (
            Column("Run", NAME, _name, head=True, length=60),
            Column("When (UTC)", FIGURE, moment),
            Column("Window", TIME, lambda line: time_cell(line.window_ns)),
            Column("Iteration", TIME, lambda line: time_cell(line.iteration_ns)),
            Column("Idle", SHARE, _idle, strong=True),
            Column("Chief causes, of the window", TEXT, lambda line: _chief(line, causes), length=300),
            Column("Budgets broken", COUNT, "broken"),
        ),
        reversed(trend.listed),
        first=10,
    )
    charts = [
        ("Median iteration", "Median iteration over the runs", iteration_curve(trend.drawn, names)),
        ("Idle share of the window", "Idle share over the runs", _idle_shares(trend.drawn, names)),
        ("Idle by cause, of the window", "Idle share by cause over the runs", _causes(trend, names, causes)),
    ]
    found: list[Block] = []
    for title, label, drawing in charts:
        if drawing:
            legend = drawing.legend if isinstance(drawing, BarChart) else ()
            found += [Heading(title), Chart(drawing, f"{label}. {sentence}", legend=legend)]
    title = clip(f"{trend.name}, {trend.device}", MOST_TITLE)
    return Section(trend.anchor, title, [Details(sentence, [*found, runs], open=unfolded)])


def _chief(line: HistoryLine, causes: Causes) -> str:
    chief = [(clip(causes.title(id), MOST_CAUSE), ns) for id, ns in by_time(line.causes)[:CHIEF_CAUSES] if ns]
    return ", ".join(f"{title} {format_share(ns, line.window_ns)}" for title, ns in chief)


def _idle(line: HistoryLine) -> float | None:
    return idle_share(line) if line.window_ns else None


def _name(line: HistoryLine) -> str:
    return visible(line.run).strip() or moment(line)


def _sentence(every: list[HistoryLine]) -> str:
    """The last run compared with the one before."""
    last = every[-1]
    now = f"Idle {format_share(last.idle_ns, last.window_ns)}"
    now += f", an iteration {format_ns(last.iteration_ns)}" if last.iteration_ns is not None else ""
    if len(every) == 1:
        return f"{now}, in the only run."
    before = every[-2]
    then = f"idle {format_share(before.idle_ns, before.window_ns)}"
    then += f", {format_ns(before.iteration_ns)}" if before.iteration_ns is not None else ""
    return f"{now} in the last run; before it {then}."


def iteration_curve(lines: list[HistoryLine], names: list[str]) -> Curve | None:
    """The median iteration of each run; None where none is known."""
    values = [line.iteration_ns for line in lines]
    top = round(1.1 * max((value for value in values if value is not None), default=0))
    return _line(values, top, time_levels(top, MOST_TICKS), names, "Median iteration", TIME) if top > 0 else None


def _idle_shares(lines: list[HistoryLine], names: list[str]) -> Curve:
    values = [round(idle_share(line) * SCALE) if line.window_ns > 0 else None for line in lines]
    top = _ceiling(max(value or 0 for value in values))
    return _line(values, top, share_levels(top, SCALE), names, "Idle share", share_of(SCALE))


def _line(
    values: Sequence[int | None], top: int, levels: dict[str, int], names: list[str], what: str, kind: CellKind
) -> Curve:
    """Values from 0 to `top`, a point a run."""
    layer = CurveLayer("", "line", TimeSeries(range(len(values) + 1), values))
    return Curve([layer], what, kind, top, levels, bottom="0", names=names)


def _ceiling(highest: int) -> int:
    """What fills the height of a chart of shares: a little more than the highest, never next to nothing."""
    return max(SCALE // 20, round(1.1 * highest))


def _causes(trend: Trend, names: list[str], causes: Causes) -> BarChart | None:
    """Bars of the idle share by cause: those with the largest shares in all runs together, and all others as one."""
    lines, total = trend.drawn, dict[str, float]()
    for line in lines:
        for id, ns in line.causes.items():
            total[id] = total.get(id, 0.0) + (ns / line.window_ns if line.window_ns > 0 else 0.0)
    top = sorted(total, key=lambda id: (-total[id], id))[:TOP_CAUSES]
    bars = []
    for name, line in zip(names, lines, strict=True):
        whole = max(line.window_ns, 1)
        found = [some(id, round(SCALE * line.causes.get(id, 0) / whole), causes) for id in top]
        shares = [each for each in found if each.ns > 0]
        rest = sum(ns for id, ns in line.causes.items() if id not in top)
        if rest > 0:
            shares.append(Share("other", "All other causes", round(SCALE * rest / whole), "idle", ""))
        parts = ", ".join(f"{share.label} {format_share(share.ns, SCALE)}" for share in shares)
        text = f"{name}: {parts or 'no idle time'}"
        bars.append(Bar(name, shares, text))
    highest = max((bar.total for bar in bars), default=0)
    if highest <= 0:
        return None
    ceiling = _ceiling(highest)
    return BarChart(
        bars, ceiling, share_levels(ceiling, SCALE), "Run", share_of(SCALE), bottom="0", named=True, fewest=FEWEST_NAMES
    )
