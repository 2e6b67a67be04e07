"""Two sides compared in every format: text for the terminal, Markdown for a ticket, JSON, and the page. Formats have
the names, suffixes and markers of those of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from nsysdiag.comparison import facts
from nsysdiag.comparison.show import job, sections, words
from nsysdiag.document.blocks import Detail, Lines, Name, Paragraph, Part, Section, named, shown
from nsysdiag.document.columns import RecordColumn, RecordTable, StatusMark, columns, of_devices
from nsysdiag.document.markup import Piece, comment, html_of, markdown_blocks, markdown_of, markdown_page
from nsysdiag.document.names import text
from nsysdiag.document.text import heading, text_of, text_page, wide_enough
from nsysdiag.document.view import Causes, as_read
from nsysdiag.document.words import path_label
from nsysdiag.formats import RenderOptions
from nsysdiag.formats import prose as failures
from nsysdiag.formats.html.assets import page_script, page_style, steps_script
from nsysdiag.formats.html.page import PlacedSection, environment, framed
from nsysdiag.record import to_json
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType


# Two sides compared as one HTML file, complete without scripts or a network.


class DrawnDevice(Struct, frozen=True):
    """A device with its verdict and its sections."""

    anchor: str
    device: facts.DeviceComparison
    mark: StatusMark
    sections: list[PlacedSection]


def render(comparison: facts.Comparison, options: RenderOptions) -> bytes:
    """The whole page as UTF-8. Raises InputError if a saved comparison is damaged."""
    card, base = job.card(comparison, Causes(comparison.causes)), sections.baseline(comparison)
    several = len(comparison.devices) > 1
    packed = steps_script() if any(device.steps for device in comparison.devices) else None
    return framed(
        "compare.html",
        comparison.tool,
        page_style("compare"),
        page_script(),
        [packed.source] if packed else [],
        steps_script=packed.packed if packed else "",
        comparison=comparison,
        options=options,
        mark=words.outcome_mark(comparison),
        devices=[_drawn(f"gpu-{at}", *each, several=several) for at, each in enumerate(_by_device(comparison))],
        job=PlacedSection("job", card) if card is not None else None,
        baseline=PlacedSection("baseline", base) if base is not None else None,
        traces=PlacedSection("traces", sections.traces(comparison)),
        files=(words.files_label(comparison.before), words.files_label(comparison.after)),
        several=several,
        html_of=lambda drawn, level, values: html_of(
            drawn.section.blocks, environment(), level, {**values, "section": drawn}
        ),
    )


def _by_device(comparison: facts.Comparison) -> Iterator[tuple[facts.DeviceComparison, list[Section]]]:
    """Each device with all about it."""
    causes, several = Causes(comparison.causes), len(comparison.devices) > 1
    return ((device, sections.of_device(device, causes, several=several)) for device in comparison.devices)


def _drawn(anchor: str, device: facts.DeviceComparison, found: list[Section], *, several: bool) -> DrawnDevice:
    """Anchors are numbered if there are several devices; their keys come from the trace and stay out of them."""
    drawn = [
        PlacedSection(f"{anchor}-{section.id}" if several else section.id, section)
        for section in found
        if shown(section.blocks, Detail.PAGE)
    ]
    return DrawnDevice(anchor, device, words.verdict_mark(device.verdict), drawn)


def render_text(comparison: facts.Comparison, options: RenderOptions) -> bytes:
    """The comparison as plain text of `options.width` columns, with colours only if requested: its first screen, or
    with `options.details` all of it."""
    width = wide_enough(options.width)
    brief = bool(comparison.headline) and not options.details
    first = text_of(sections.first_screen(comparison), Detail.SUMMARY, width)
    blocks = first if brief else _in_full(comparison, width)
    before, after = (
        f"{words.files_label(traces)} ({format_bytes(sum(trace.size_bytes for trace in traces))})"
        for traces in (comparison.before, comparison.after)
    )
    head = f"{comparison.tool.name} {comparison.tool.version} · {before} before, {after} after"
    return text_page(head, blocks, width, options.command, color=options.color)


def _in_full(comparison: facts.Comparison, width: int) -> list[RenderableType]:
    detail = Detail.BRIEF if len(comparison.devices) > 1 else Detail.SUMMARY
    blocks = text_of(sections.verdict(comparison), Detail.SUMMARY, width)
    blocks += text_of(job.card(comparison, Causes(comparison.causes)), Detail.SUMMARY, width)
    blocks += text_of(sections.baseline(comparison), Detail.SUMMARY, width)
    for device, found in _by_device(comparison):
        blocks.append(heading(device.name_after, device.key))
        for section in found:
            blocks += text_of(section, detail, width)
    if more := words.elsewhere(comparison):
        blocks.append(heading("", more))
    return [*blocks, *text_of(sections.traces(comparison), detail, width)]


def render_markdown(comparison: facts.Comparison, options: RenderOptions) -> bytes:
    """The comparison as Markdown, with the marker by which a later run finds its own file again."""
    if options.comment:
        return _comment(comparison, options.comment, options)
    blocks = markdown_of(sections.verdict(comparison), 2)
    blocks += markdown_blocks(job.brief(comparison, job.TICKET_BOTTLENECKS), 3)
    blocks += markdown_of(sections.baseline(comparison), 2)
    for device, found in _by_device(comparison):
        blocks.append(f"## {text(device.name_after)} ({text(device.key)})")
        for section in found:
            blocks += markdown_of(section, 3)
    blocks += [text(more)] if (more := words.elsewhere(comparison)) else []
    blocks += markdown_of(sections.traces(comparison), 2)
    return markdown_page("before and after", blocks, _origin(comparison), options.command, comparison.headline)


def _comment(comparison: facts.Comparison, key: str, options: RenderOptions) -> bytes:
    """The verdict, budgets and the job, and folded below them all about each device."""
    mark = words.outcome_mark(comparison)
    said = Paragraph(f"{mark.icon} {mark.word}. {comparison.headline or comparison.sentence}", "strong")
    pieces = [
        Piece(Section("overview", "", [said]), 0),
        Piece(failures.section(options), 0),
        *([Piece(found, 1)] if (found := sections.baseline(comparison)) else []),
        Piece(Section("notes", "Notes", [Lines(comparison.notes)]), 3, folded=True),
        Piece(Section("job", "The job", job.brief(comparison, job.TICKET_BOTTLENECKS)), 2),
    ]
    for device, of_device in _by_device(comparison):
        where = f"{device.key}: " if len(comparison.devices) > 1 else ""
        pieces += [
            Piece(section, 4 + at, folded=True, title=f"{where}{section.title}") for at, section in enumerate(of_device)
        ]
    pieces.append(Piece(sections.traces(comparison), 99, folded=True))
    origin = [*_origin(comparison), *named(" · ", options.command)]
    return comment(key, "before and after", pieces, origin, options.report_url)


def _origin(comparison: facts.Comparison) -> list[Part]:
    tool = f"{comparison.tool.name} {comparison.tool.version}"
    return [tool, *_files(" · before ", comparison.before), *_files(" · after ", comparison.after)]


def _files(label: str, traces: Sequence[facts.SideTrace]) -> Iterator[Part]:
    for trace in traces[: words.MOST_FILES]:
        yield from (label, Name(trace.file), f" ({format_bytes(trace.size_bytes)})")
        label = ", "
    if len(traces) > words.MOST_FILES:
        yield f", {len(traces) - words.MOST_FILES:,} more"


Render = Callable[[facts.Comparison, RenderOptions], bytes]


def _read(render: Render) -> Render:
    """With ranges as readers see them."""
    return lambda comparison, options: render(as_read(comparison), options)


RENDERERS: dict[str, Render] = {
    "html": _read(render),
    "json": lambda comparison, _options: to_json(comparison),
    "md": _read(render_markdown),
    "txt": _read(render_text),
}


# The tables of a comparison as plain values, for data frames: times are ns for a unit of work, before and after.


def _of(
    name: str, shown: tuple[RecordColumn[Any], ...], rows: Callable[[facts.DeviceComparison], Iterable[Any]]
) -> RecordTable[facts.Comparison, Any]:
    """A table of all devices of a comparison, with the keys of devices as in a report."""
    return cast("RecordTable[facts.Comparison, Any]", of_devices(name, shown, cast("Any", rows)))


def _change(field: str, prefix: str = "") -> str:
    """The columns of a change in this field."""
    names = ["before_ns", "after_ns", "change_ns", "low_ns", "high_ns", "least_ns", "verdict"]
    return " ".join(f"{prefix}{name}={field}.{name}" for name in names)


_DEVICES = """
    name_before name_after verdict unit=unit.kind units_before=unit.count_before units_after=unit.count_after
    scale=unit.scale noise slow_steps
"""
_KERNELS = """
    name short_name communication status count_before count_after mean_before_ns mean_after_ns
"""
_METRICS = (
    *columns(facts.MetricChange, "metric=id title unit"),
    RecordColumn[facts.MetricChange]("before", "number", lambda row: row.before),
    RecordColumn[facts.MetricChange]("after", "number", lambda row: row.after),
)
_SIGNATURES = (
    *columns(facts.SignatureChange, "id status previous_op next_op"),
    RecordColumn[facts.SignatureChange]("nvtx", "text", lambda row: path_label(row.nvtx)),
    *columns(facts.SignatureChange, f"cause_before cause_after count_before count_after {_change('change')}"),
)
_TABLES: tuple[RecordTable[facts.Comparison, Any], ...] = (
    _of(
        "devices",
        columns(facts.DeviceComparison, f"{_DEVICES} {_change('length', 'length_')} {_change('step', 'step_')}"),
        lambda device: [device],
    ),
    _of("parts", columns(facts.PartChange, f"part=id {_change('change')}"), lambda device: device.parts),
    _of("ledger", columns(facts.PartChange, f"cause=id {_change('change')}"), lambda device: device.ledger),
    _of("root_ledger", columns(facts.PartChange, f"cause=id {_change('change')}"), lambda device: device.root_ledger),
    _of("waterfall", columns(facts.Step, "step=id change_ns"), lambda device: device.waterfall),
    _of("moves", columns(facts.Move, "cause_before=before cause_after=after ns seen_ns"), lambda device: device.moves),
    _of("workload", columns(facts.CountChange, "kind=id before after changed"), lambda device: device.workload),
    _of("kernels", columns(facts.KernelChange, f"{_KERNELS} {_change('change')}"), lambda device: device.kernels),
    _of("signatures", _SIGNATURES, lambda device: device.signatures),
    _of("copies", columns(facts.CopyChange), lambda device: device.copies),
    _of("collectives", columns(facts.CollectiveChange), lambda device: device.communication),
    _of("metrics", _METRICS, lambda device: [*device.launch, *device.utilization]),
    _of("findings", columns(facts.FindingChange), lambda device: device.findings),
    RecordTable("account", columns(facts.AccountChange), lambda found: found.job.account if found.job else ()),
    RecordTable(
        "work",
        (
            *columns(facts.WorkChange, "work=id"),
            RecordColumn[facts.WorkChange]("before", "number", lambda row: row.before),
            RecordColumn[facts.WorkChange]("after", "number", lambda row: row.after),
            *columns(facts.WorkChange, "differs"),
        ),
        lambda found: found.job.work if found.job else (),
    ),
    RecordTable(
        "traces",
        columns(
            words.TraceRow,
            """
            side file=trace.file given=trace.given prediction=trace.prediction size_bytes=trace.size_bytes
            fingerprint=trace.fingerprint nsys_version=trace.nsys_version
            """,
        ),
        words.traces_of,
    ),
)
BY_NAME = {table.name: table for table in _TABLES}
