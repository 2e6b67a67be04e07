"""The summary of a batch, as a page and as Markdown for a CI job: the outcome of all traces, and a row per trace and
GPU, worst first. And the page of its history, run by run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct

from nsysdiag.ci.facts import BatchDevice, BatchSummary, BudgetResult, HistoryLine
from nsysdiag.document import blocks as b
from nsysdiag.document import columns as c
from nsysdiag.document import drawings as d
from nsysdiag.document.axis import MOST_TICKS, time_levels
from nsysdiag.document.columns import CODE, COUNT, MARK, NAME, SHARE, TEXT, TIME, StatusMark, part
from nsysdiag.document.markup import Piece, comment, markdown_document
from nsysdiag.document.names import clip, visible
from nsysdiag.document.svg import FEWEST_NAMES
from nsysdiag.document.view import PARTS, Causes, Share, by_time, share_of
from nsysdiag.document.words import NO_GPU_WORK, SEVERITY_ICONS, counted
from nsysdiag.formats import RenderOptions
from nsysdiag.formats.batch import entries
from nsysdiag.formats.batch.entries import FAILED, BatchRow, budget_mark, fails, rows, shown_name, shown_unjudged, told
from nsysdiag.formats.html import page
from nsysdiag.units import format_exact_ns, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import CauseInfo


SENTENCE, TITLE, NAME_LENGTH, MOST_WARNINGS = 400, 160, 120, 200
CAPTION = "Compute, exposed communication, exposed copies and idle time add up to the window."
FAILURES = (
    b.Column("Trace", NAME, lambda entry: shown_name(entry.input), head=True, length=NAME_LENGTH),
    b.Column("Why", TEXT, lambda entry: clip(entry.error, SENTENCE), length=SENTENCE),
    b.Column("What to do", TEXT, lambda entry: clip(entry.hint, SENTENCE), length=SENTENCE),
)
BUDGETS = (
    b.Column("Trace", NAME, lambda pair: shown_name(pair[0].input), head=True, length=NAME_LENGTH),
    b.Column("State", MARK, lambda pair: budget_mark(pair[1])),
    b.Column("GPU", CODE, lambda pair: _breaking(pair[1])),
    b.Column("Budget", CODE, lambda pair: pair[1].budget, length=NAME_LENGTH),
    b.Column("Why", TEXT, lambda pair: f"{clip(told(pair[1]), SENTENCE)} ({clip(pair[1].source, NAME_LENGTH)})"),
)
"""The columns of pairs of an entry and a budget."""
UNJUDGED = [column for column in BUDGETS if column.title != "GPU"]
TONES = {"high": "worse", "medium": "mixed", "low": "low", "info": "info"}
"""The colours of severities."""
COMMENTED = {"overview": 0, "failed": 0, "broken": 0, "unjudged": 1, "traces": 2, "health": 3}
"""The sections of a comment, those of larger numbers the less important."""
FOLDED = ("traces", "health")
MOST_BYTES = 1_000_000
"""GitHub takes 1 MiB from all steps of a job together: a little is left to others."""
CUT = "\n**Cut here: the whole of it would be longer than a summary may be.** All of it is in `index.html`.\n"


def render_page(summary: BatchSummary, history: Sequence[HistoryLine]) -> bytes:
    """The whole page as UTF-8, complete without scripts or a network."""
    return drawn(document(summary, history), summary)


def drawn(found: b.Document, summary: BatchSummary) -> bytes:
    """A page of this batch as UTF-8."""
    return page.document(found, summary.tool, summary.settings, RenderOptions(), "batch")


def render_markdown(summary: BatchSummary, most: int = MOST_BYTES) -> bytes:
    """At most `most` bytes; lines that do not fit are cut, and a last sentence says so."""
    found, config = document(summary), summary.settings.get("config")
    origin = [f"{summary.tool.name} {summary.tool.version}", *b.named(" · settings of ", str(config or ""))]
    data = markdown_document(found.title.lower(), found.sections, origin, None)
    if len(data) <= most:
        return data
    end = data.rfind(b"\n", 0, most - len(CUT.encode())) + 1
    return data[:end] + CUT.encode()


def render_comment(summary: BatchSummary, key: str, report_url: str | None = None) -> bytes:
    """The same as a comment on a pull request: what fails comes first and stays, the list of traces is folded."""
    pieces = [
        Piece(section, COMMENTED[section.id], folded=section.id in FOLDED) for section in document(summary).sections
    ]
    return comment(key, "traces", pieces, [f"{summary.tool.name} {summary.tool.version}"], report_url)


def document(summary: BatchSummary, history: Sequence[HistoryLine] = ()) -> b.Document:
    """All of it; with a `history` the page shows the idle share over the runs, and leads to their page."""
    mark = entries.result(summary)
    failed = [entry for entry in summary.entries if entry.status == FAILED]
    broken = [(entry, each) for entry in summary.entries for each in entry.budgets if each.broken]
    broken.sort(key=lambda pair: not fails(pair[1]))
    unjudged = [(entry, each) for entry in summary.entries for each in shown_unjudged(entry.unjudged)]
    sections = [
        b.Section("overview", "Summary", [b.Paragraph([mark, f". {entries.headline(summary)}"], "verdict")]),
        b.Section("failed", "Not analyzed", [b.Table.of("", FAILURES, failed, limit=b.MARKDOWN)]),
        b.Section("broken", "Broken budgets", [b.Table.of("", BUDGETS, broken, limit=b.MARKDOWN)]),
        b.Section("unjudged", "Budgets that cannot be judged", [b.Table.of("", UNJUDGED, unjudged, limit=b.MARKDOWN)]),
        b.Section("traces", "All traces, worst first", _traces(summary, history)),
        b.Section("health", "Health of the traces", _warnings(summary)),
    ]
    facts: b.Words = [b.Name("Over time", href=link("trend.html"))] if history else ""
    return b.Document("Traces", sections, facts, f"{mark.word}: traces", contents=False)


def link(path: str) -> str:
    """A path within the folder as an address that leads nowhere else."""
    parts = [part for part in path.encode("utf-8", "backslashreplace").split(b"/") if part not in (b"", b".", b"..")]
    return "./" + quote(b"/".join(parts), safe="/-._~") if parts else ""


def _breaking(budget: BudgetResult) -> str:
    """The GPUs that break it, or else the one that comes closest to."""
    return ", ".join(each.device for each in budget.devices if each.broken) or budget.device


def _warnings(summary: BatchSummary) -> list[b.Block]:
    lines = [
        f"{clip(entry.input, NAME_LENGTH)}: {clip(warning, SENTENCE)}"
        for entry in summary.entries
        for warning in entry.warnings
    ]
    more = len(lines) - MOST_WARNINGS
    rest = [b.Paragraph(f"{more:,} more are in the reports.", "quiet", b.PAGE)] if more > 0 else []
    return [b.Lines(lines[:MOST_WARNINGS], b.PAGE, "note"), *rest]


def _traces(summary: BatchSummary, history: Sequence[HistoryLine]) -> list[b.Block]:
    found, runs = rows(summary), series(history)
    if not found:
        return [b.Paragraph("There are no traces.")]
    keys = [(row.entry.input, row.device.key) for row in found if row.device]
    lines = {key: line for key in keys if (line := spark(runs.get(key, [])))}
    legend = [d.LegendEntry(label, part, "") for part, label in PARTS.values()]
    return [b.Table.of("One row a trace and GPU", _columns(lines), found, note=CAPTION, first=50, legend=legend)]


def _columns(lines: Mapping[tuple[str, str], d.Spark]) -> list[b.Column]:
    """Those of BatchRow. `lines` are the idle share over the runs, by trace and GPU."""

    def over_runs(row: BatchRow) -> b.Cell | None:
        line = lines.get((row.entry.input, row.device.key)) if row.device and row.device.window_ns else None
        return b.Cell(line, order=line.change) if line else None

    return [
        b.Column(
            "Trace",
            NAME,
            lambda row: b.Name(shown_name(row.entry.input), href=link(row.entry.report)),
            head=True,
            length=80,
        ),
        b.Column("GPU", CODE, _gpu, length=24),
        b.Column("State", MARK, _state, pick=True),
        b.Column("Verdict", TEXT, _verdict, length=SENTENCE),
        b.Column("Window", TIME, _worked(_window), limit=b.PAGE),
        _share("Idle", "idle_ns", strong=True),
        *([b.Column("Idle over runs", c.SPARK, over_runs, limit=b.PAGE)] if lines else []),
        _share("Busy", "busy_ns", limit=b.PAGE),
        _share("Compute", "compute_ns"),
        _share("Communication", "exposed_comm_ns"),
        _share("Copies", "exposed_copy_ns"),
        b.Column("Iteration", TIME, _worked(lambda device: time_cell(device.iteration_ns))),
        b.Column("Coverage", SHARE, _worked(lambda device: device.coverage), limit=b.PAGE),
        b.Column("Top finding", TEXT, _finding, length=TITLE),
    ]


def _worked(cell: Callable[[BatchDevice], object]) -> Callable[[BatchRow], object]:
    """A cell about the device, None of one that has no window."""
    return lambda row: cell(row.device) if row.device and row.device.window_ns else None


def _share(title: str, field: str, **more: Any) -> b.Column:
    """A time as its share of the window."""

    def cell(device: BatchDevice) -> b.Cell:
        ns = getattr(device, field)
        return b.Cell(part(ns, device.window_ns), hint=format_exact_ns(ns))

    return b.Column(title, SHARE, _worked(cell), **more)


def _window(device: BatchDevice) -> b.Cell:
    """The window with what it consists of."""
    parts = (device.compute_ns, device.exposed_comm_ns, device.exposed_copy_ns, device.idle_ns)
    ns = device.window_ns
    whole = d.StackedBar("How the window divides", d.window_stack(parts), ns, said=format_ns(ns))
    return b.Cell(whole, c.STACK, hint=format_exact_ns(ns), order=ns)


def _gpu(row: BatchRow) -> b.Cell | None:
    if row.unused:
        return b.Cell(f"{row.unused:,} more", TEXT)
    return b.Cell(row.device.key, hint=row.device.name) if row.device else None


def _state(row: BatchRow) -> b.Cell:
    """Below it stand the budgets that are broken, or that the trace cannot tell."""
    said: list[tuple[entries.Budget, str, str]] = [
        (each, told(each), f"{each.budget}, {each.source}") for each in row.broken
    ]
    said += [(each, f"{each.budget}: {each.why}", each.source) for each in row.unjudged]
    return b.Cell(row.mark, note=[b.Remark(text, "bad" if fails(each) else "plain", hint) for each, text, hint in said])


def _verdict(row: BatchRow) -> b.Cell:
    if row.unused:
        return b.Cell(f"The machine has {counted(row.unused, 'more GPU')}, without work in this trace.")
    if row.entry.status == FAILED:
        why = clip(row.entry.error, SENTENCE) or "No reason is known."
        return b.Cell(why, note=[b.Remark(row.entry.hint)] if row.entry.hint else ())
    return b.Cell(clip(row.device.sentence, SENTENCE) if row.device else f"{NO_GPU_WORK}.")


def time_cell(ns: int | None) -> b.Cell | None:
    """A time with its exact length for the pointer."""
    return None if ns is None else b.Cell(ns, hint=format_exact_ns(ns))


def _finding(row: BatchRow) -> b.Cell | None:
    top = row.top
    if top is None:
        return None
    mark = StatusMark(SEVERITY_ICONS.get(top.severity, "○"), clip(top.severity, 20), TONES.get(top.severity, "same"))
    lost = f"{format_ns(top.lost_ns)}, {format_share(top.lost_share, 1)} of the window"
    return b.Cell((mark, f": {clip(top.title, TITLE)}"), note=lost)


# The history of traces by input and device, one series each, the newest run last.

MOST_SPARKS = 60
_LATEST = 253_402_300_799


def series(history: Sequence[HistoryLine]) -> dict[tuple[str, str], list[HistoryLine]]:
    """The runs by input and device, in the order of time; equal times keep the order of the file."""
    found: dict[tuple[str, str], list[HistoryLine]] = {}
    for line in sorted(history, key=lambda each: each.at):
        found.setdefault((line.input, line.device), []).append(line)
    return found


def idle_share(line: HistoryLine) -> float:
    """Idle time as a part of the window, 0..1."""
    return line.idle_ns / line.window_ns if line.window_ns > 0 else 0.0


def moment(line: HistoryLine) -> str:
    """When a run was, in UTC to the minute."""
    return datetime.fromtimestamp(min(max(line.at, 0), _LATEST), tz=UTC).strftime("%Y-%m-%d %H:%M")


def spark(lines: Sequence[HistoryLine]) -> d.Spark | None:
    """The idle share of the latest runs in which the device worked as a line, None if there are not two."""
    shares = [idle_share(line) for line in lines[-MOST_SPARKS:] if line.window_ns > 0]
    return d.Spark(shares, f"Idle share over {len(shares)} runs") if len(shares) > 1 else None


STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_LEVELS = 5


def share_levels(top: int, scale: int) -> dict[str, int]:
    """Round shares up to `top` parts of `scale`, and to all of it, by their texts."""
    top = min(top, scale)
    step = next((step for step in STEPS if top / scale <= step * MOST_LEVELS), STEPS[-1])
    count = int(top / scale / step + 1e-9)
    return {format_share(step * at, 1).replace(".0%", "%"): round(step * at * scale) for at in range(1, count + 1)}


# The page of a history: for each trace and GPU how long an iteration took, and why the GPU was idle, run by run.

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


def render_trend(summary: BatchSummary, history: Sequence[HistoryLine], causes: Sequence[CauseInfo] = ()) -> bytes:
    """The whole page as UTF-8."""
    return drawn(trends(summary, history, Causes(causes)), summary)


def trends(summary: BatchSummary, history: Sequence[HistoryLine], causes: Causes) -> b.Document:
    """The latest run of each trace and GPU and the one before, and a section for each of them."""
    runs = series(history)
    # Those of this batch, the worst first; then those that only earlier runs had.
    here = [(row.entry.input, row.device.key) for row in rows(summary) if row.device]
    now = [key for key in here if key in runs]
    order = [*now, *sorted(runs.keys() - set(now))]
    points = max(FEWEST_POINTS, min(MOST_POINTS, MOST_OF_ALL // max(min(len(order), MOST_SERIES), 1)))
    found = [Trend(f"t-{at}", *key, runs[key], points) for at, key in enumerate(order[:MOST_SERIES])]
    sections = [
        b.Section("latest", "Latest run and the one before", _overview(found, len(order))),
        *(_section(trend, causes, unfolded=at < UNFOLDED) for at, trend in enumerate(found)),
    ]
    return b.Document("Traces over time", sections, [b.Name("All traces", href=link("index.html"))], contents=False)


def _overview(trends: Sequence[Trend], total: int) -> list[b.Block]:
    count = len({(line.at, line.run) for trend in trends for line in trend.listed})
    said = [f"{counted(total, 'trace and GPU', 'traces and GPUs')} over {counted(count, 'run')}."]
    if any(len(trend.every) > trend.points for trend in trends):
        said.append(f"Charts show the latest {trends[0].points:,} runs of each.")
    if any(len(trend.every) > MOST_ROWS for trend in trends):
        said.append(f"Tables show the latest {MOST_ROWS} runs of each.")
    left_out = [b.Paragraph(f"{total - len(trends):,} more are left out.", "note")] if total > len(trends) else []
    return [
        b.Paragraph(" ".join(said)),
        *left_out,
        b.Table.of(
            "The latest run of each trace and GPU, and the one before",
            (
                b.Column(
                    "Trace", NAME, lambda trend: b.Name(trend.name, href=f"#{trend.anchor}"), head=True, length=80
                ),
                b.Column("GPU", CODE, "device", length=30),
                b.Column("Runs", COUNT, lambda trend: len(trend.every)),
                b.Column("Latest", TEXT, lambda trend: _name(trend.last), length=40),
                b.Column("Iteration", TIME, lambda trend: time_cell(trend.last.iteration_ns)),
                b.Column("Before", TIME, lambda trend: time_cell(trend.before.iteration_ns) if trend.before else None),
                b.Column("Idle", SHARE, lambda trend: _idle(trend.last)),
                b.Column("Before", SHARE, lambda trend: _idle(trend.before) if trend.before else None),
                b.Column("Budgets broken", COUNT, "last.broken"),
            ),
            trends,
            first=50,
        ),
    ]


def _section(trend: Trend, causes: Causes, *, unfolded: bool) -> b.Section:
    """The charts and runs of one trace and GPU, folded under the sentence that says where it stands."""
    sentence, names = _sentence(trend.every), [_name(line) for line in trend.drawn]
    runs = b.Table.of(
        "Runs, the newest first",
        (
            b.Column("Run", NAME, _name, head=True, length=60),
            b.Column("When (UTC)", c.FIGURE, moment),
            b.Column("Window", TIME, lambda line: time_cell(line.window_ns)),
            b.Column("Iteration", TIME, lambda line: time_cell(line.iteration_ns)),
            b.Column("Idle", SHARE, _idle, strong=True),
            b.Column("Chief causes, of the window", TEXT, lambda line: _chief(line, causes), length=300),
            b.Column("Budgets broken", COUNT, "broken"),
        ),
        reversed(trend.listed),
        first=10,
    )
    charts = [
        ("Median iteration", "Median iteration over the runs", iteration_curve(trend.drawn, names)),
        ("Idle share of the window", "Idle share over the runs", _idle_shares(trend.drawn, names)),
        ("Idle by cause, of the window", "Idle share by cause over the runs", _causes(trend, names, causes)),
    ]
    found: list[b.Block] = []
    for title, label, drawing in charts:
        if drawing:
            legend = drawing.legend if isinstance(drawing, d.BarChart) else ()
            found += [b.Heading(title), b.Chart(drawing, f"{label}. {sentence}", legend=legend)]
    title = clip(f"{trend.name}, {trend.device}", MOST_TITLE)
    return b.Section(trend.anchor, title, [b.Details(sentence, [*found, runs], open=unfolded)])


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


def iteration_curve(lines: list[HistoryLine], names: list[str]) -> d.Curve | None:
    """The median iteration of each run; None if none is known."""
    values = [line.iteration_ns for line in lines]
    top = round(1.1 * max((value for value in values if value is not None), default=0))
    return _line(values, top, time_levels(top, MOST_TICKS), names, "Median iteration", TIME) if top > 0 else None


def _idle_shares(lines: list[HistoryLine], names: list[str]) -> d.Curve:
    values = [round(idle_share(line) * SCALE) if line.window_ns > 0 else None for line in lines]
    top = _ceiling(max(value or 0 for value in values))
    return _line(values, top, share_levels(top, SCALE), names, "Idle share", c.share_of(SCALE))


def _line(
    values: Sequence[int | None], top: int, levels: dict[str, int], names: list[str], what: str, kind: c.CellKind
) -> d.Curve:
    """Values from 0 to `top`, a point a run."""
    layer = d.CurveLayer("", "line", d.TimeSeries(range(len(values) + 1), values))
    return d.Curve([layer], what, kind, top, levels, bottom="0", names=names)


def _ceiling(highest: int) -> int:
    """What fills the height of a chart of shares: a little more than the highest, never next to nothing."""
    return max(SCALE // 20, round(1.1 * highest))


def _causes(trend: Trend, names: list[str], causes: Causes) -> d.BarChart | None:
    """Bars of the idle share by cause: those with the largest shares in all runs together, and all others as one."""
    lines, total = trend.drawn, dict[str, float]()
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
            shares.append(Share("other", "All other causes", round(SCALE * rest / whole), "idle", ""))
        parts = ", ".join(f"{share.label} {format_share(share.ns, SCALE)}" for share in shares)
        text = f"{name}: {parts or 'no idle time'}"
        bars.append(d.Bar(name, shares, text))
    highest = max((bar.total for bar in bars), default=0)
    if highest <= 0:
        return None
    ceiling = _ceiling(highest)
    return d.BarChart(
        bars,
        ceiling,
        share_levels(ceiling, SCALE),
        "Run",
        c.share_of(SCALE),
        bottom="0",
        named=True,
        fewest=FEWEST_NAMES,
    )
