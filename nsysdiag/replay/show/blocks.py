"""A prediction: what each device does now and would do, where its idle time went, and what each fix would bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nsysdiag.diagnosis.facts import CANNOT_TELL, between
from nsysdiag.document.blocks import (
    PAGE,
    TERMINAL,
    TICKET,
    Block,
    Cell,
    Column,
    Detail,
    Document,
    Limit,
    Lines,
    Name,
    Paragraph,
    Part,
    Section,
    Table,
    Tone,
)
from nsysdiag.document.columns import BAR, CODE, FIGURE, KEY, NAME, SIDE, SIGNED, STACK, TEXT, TIME, part
from nsysdiag.document.drawings import LegendEntry, StackedBar, legend_entry, window_stack
from nsysdiag.document.markup import markdown_of, markdown_page
from nsysdiag.document.text import text_of as terminal_text
from nsysdiag.document.text import text_page, wide_enough
from nsysdiag.document.view import PARTS, Causes, as_read, share_of
from nsysdiag.formats import RenderOptions
from nsysdiag.formats.html.page import document
from nsysdiag.record import to_json
from nsysdiag.replay.facts import WhatIf, text_of
from nsysdiag.replay.show import outlooks as words
from nsysdiag.replay.show.outlooks import NOW, PREDICTED, Strip, strip, strips
from nsysdiag.units import format_bytes, format_share, format_signed_share, format_two_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.replay.facts import CauseChange, FourParts, Saving, WhatIfDevice

TOP_DEVICES, TOP_CAUSES, TOP_SAVINGS, TOP_LINES = 2, 4, 6, 1
MOST_DEVICES, MOST_SAVINGS = 64, 100
DEVICES = (
    Column("GPU", NAME, head=True, length=40),
    Column("", FIGURE),
    Column("Length", TIME, strong=True),
    Column("Divided", STACK, limit=PAGE),
    *(Column(label, SIDE) for label in ("Compute", "Comm.", "Copies", "Idle")),
)
SAVINGS = (
    Column("#", TEXT, head=True, length=20),
    Column("Fix", TEXT, length=90),
    Column(PREDICTED, TIME, strong=True),
    Column("Saves", FIGURE),
    Column("Between", FIGURE, spare=True),
    Column("Option", FIGURE, limit=TERMINAL),
    Column("Options", CODE, length=160, limit=TICKET),
)


def sections(found: WhatIf) -> list[Section]:
    """The whole document, the most important first."""
    found = as_read(found)
    causes = Causes(found.causes)
    blocks = [
        Paragraph(words.headline(found), "verdict", PAGE),
        *(Paragraph(warning, "note") for warning in [words.broken_identity(found)] if warning),
        Paragraph(words.replayed(found)),
        *_reasons(found),
        *_strips(found, causes),
        *_savings(found),
        *_waterfall(found, causes),
        *_devices(found),
    ]
    made = [Section("prediction", "Prediction", blocks)]
    if found.caveats:
        caveats = Lines(found.caveats, Limit(summary=TOP_LINES, brief=TOP_LINES))
        made.append(Section("caveats", "What is not predicted", [caveats]))
    if found.trace.warnings:
        warnings = Lines(found.trace.warnings, Limit(summary=TOP_LINES, brief=TOP_LINES), "note")
        made.append(Section("traces", "Trace health", [warnings]))
    return made


def _reasons(found: WhatIf) -> list[Block]:
    """Why the bounds are apart."""
    if not found.reasons:
        return []
    return [Paragraph("The bounds are apart:"), Lines(found.reasons, Limit(summary=TOP_LINES, brief=TOP_LINES))]


def _predicts(found: WhatIf) -> bool:
    return bool(found.transforms) and found.refused is None and not found.cannot_tell


def _strips(found: WhatIf, causes: Causes) -> list[Block]:
    """Today's step above the predicted one on one scale, by part and cause; of several devices all together."""
    if not _predicts(found) or not found.devices:
        return []
    of = "A step" if found.per == "step" else "The window"
    gpus = " of all GPUs" if len(found.devices) > 1 else ""
    now = _strip([each.now for each in found.devices], {row.cause: row.from_ns for row in found.waterfall}, causes)
    then = _strip([each.predicted for each in found.devices], {row.cause: row.to_ns for row in found.waterfall}, causes)
    return [strips(of + gpus, now, then)]


def _strip(sides: Sequence[FourParts], idle: dict[str, int], causes: Causes) -> Strip:
    """What runs, then the idle time by cause; idle time of no cause of the list is idle time."""
    work = {name: sum(getattr(each, f"{name}_ns") for each in sides) for name in PARTS}
    rest = work.pop("idle") - sum(idle.values())
    return strip({**work, **idle}, causes, rest)


def _waterfall(found: WhatIf, causes: Causes) -> list[Block]:
    """What became of the idle time of each cause, the largest change first."""
    if not _predicts(found):
        return []
    whole = max(sum(each.now_ns for each in found.devices) or found.now_ns, 1)
    changed = sorted(found.waterfall, key=lambda row: (-abs(_change(row)), -row.from_ns, row.cause))
    most = max((abs(_change(row)) for row in changed), default=0)
    rows = [row for row in changed if row.from_ns or row.to_ns]
    columns = (
        Column("Cause", KEY, lambda row: legend_entry(share_of(row.cause, row.from_ns, causes)), head=True),
        Column(NOW, SIDE, "from_ns"),
        Column(PREDICTED, SIDE, "to_ns"),
        Column("Change", SIGNED, lambda row: Cell(_change(row), tone=_tone(_change(row))), strong=True),
        Column("Of all", FIGURE, lambda row: format_signed_share(_change(row), whole) if _change(row) else None),
        Column("Bar", BAR, lambda row: part(abs(_change(row)), most)),
    )
    title = f"Idle time of a {found.per} by cause" + (", over all GPUs" if len(found.devices) > 1 else "")
    limit = Limit(summary=TOP_CAUSES, brief=TOP_CAUSES)
    return [Table.of(title, columns, rows, noun="causes", order="that change most", sortable=False, limit=limit)]


def _change(row: CauseChange) -> int:
    return row.to_ns - row.from_ns


def _tone(change: int) -> Tone:
    return "good" if change < 0 else "bad" if change > 0 else "plain"


def _devices(found: WhatIf) -> list[Block]:
    """Two rows for each device; of one without a prediction only what is. The terminal has none below a listing."""
    sides = (NOW, PREDICTED) if _predicts(found) else (NOW,)
    longest = max((max(each.now_ns, each.predicted_ns) for each in found.devices), default=0)
    rows = [_side(each, side, longest) for each in found.devices for side in sides]
    most, top = MOST_DEVICES * len(sides), 0 if found.savings else TOP_DEVICES * len(sides)
    limit = Limit(page=most, ticket=most, summary=top, brief=top)
    legend = [LegendEntry(label, id, "") for id, label in PARTS.values()]
    title = "Each GPU, " + ("per step" if found.per == "step" else "in the window")
    note = "Communication and copies: exposed time only."
    return [Table(title, DEVICES, rows, note, "rows", sortable=False, legend=legend, limit=limit)]


def _side(device: WhatIfDevice, side: str, longest: int) -> tuple[object, ...]:
    parts, length = (device.now, device.now_ns) if side == NOW else (device.predicted, device.predicted_ns)
    times = (parts.compute_ns, parts.exposed_comm_ns, parts.exposed_copy_ns, parts.idle_ns)
    drawn = StackedBar(f"How the time of {device.key} divides, {side.lower()}", window_stack(times), longest, longest)
    model = device.name if side == NOW else ""
    return (Cell(device.key, note=model), side, length, drawn, *times)


def _savings(found: WhatIf) -> list[Block]:
    """What each finding would bring, then the combinations that pay, and the floor."""
    if found.transforms or not found.savings:
        return []
    single = [each.finding for each in found.savings if each.finding is not None]
    numbers = {finding: str(at) for at, finding in enumerate(single, 1)}
    rows = [_saving(each, found, numbers) for each in found.savings]
    limit = Limit(page=MOST_SAVINGS, ticket=MOST_SAVINGS, summary=TOP_SAVINGS, brief=TOP_SAVINGS)
    table = Table("Predicted savings of fixes", SAVINGS, rows, noun="fixes", sortable=False, limit=limit)
    refused = [
        f"{numbers.get(each.finding or '', 'Together')} is not predicted: {each.refused}"
        for each in found.savings
        if each.refused is not None
    ]
    apart = [
        f"{numbers.get(each.finding or '', 'Together')}: anywhere between {_between(each)}: {CANNOT_TELL}"
        for each in found.savings
        if each.cannot_tell
    ]
    floor = words.floor(found)
    reasons = Lines([*apart, *refused], Limit(summary=TOP_LINES, brief=TOP_LINES))
    return [table, *([Paragraph(floor)] if floor else []), reasons]


def _saving(saving: Saving, found: WhatIf, numbers: dict[str, str]) -> tuple[object, ...]:
    """The numbers of its findings stand for several."""
    ids = [saving.finding] if saving.finding is not None else saving.findings
    place = "+".join(numbers.get(each, "?") for each in ids)
    name = saving.title or (saving.finding if saving.finding is not None else f"{place.replace('+', ' and ')} together")
    option = text_of(saving.transforms)
    short = option if saving.finding is not None else None
    if saving.refused is not None:
        return (place, name, None, None, None, short, option)
    most, saved, least = (max(found.now_ns - ns, 0) for ns in (saving.low_ns, saving.predicted_ns, saving.high_ns))
    apart, saves = between(least, most, found.now_ns), format_share(saved, found.now_ns)
    return (
        place,
        name,
        None if saving.cannot_tell else saving.predicted_ns,
        apart if saving.cannot_tell else saves,
        _between(saving),
        short,
        option,
    )


def _between(saving: Saving) -> str:
    return format_two_ns(saving.low_ns, saving.high_ns, " and ")


# A prediction in every format: text for the terminal, Markdown for a ticket, JSON, and the page. Formats have the
# names, suffixes and markers of those of a report.


def render_text(found: WhatIf, options: RenderOptions) -> bytes:
    """The prediction as plain text of `options.width` columns, with colours only if requested: one screen, which begins
    with the headline."""
    width = wide_enough(options.width)
    blocks = [block for section in sections(found) for block in section.blocks]
    whole = Section("", "", [Paragraph(words.headline(found), "verdict"), *blocks])
    head = f"{found.tool.name} {found.tool.version} · {found.trace.file} · {format_bytes(found.trace.size_bytes)}"
    drawn = terminal_text(whole, Detail.SUMMARY, width)
    return text_page(head, drawn, width, options.command, color=options.color)


def render_markdown(found: WhatIf, options: RenderOptions) -> bytes:
    """The prediction as Markdown, with the marker by which a later run finds its own file again."""
    blocks = [line for section in sections(found) for line in markdown_of(section, 2)]
    tool = f"{found.tool.name} {found.tool.version}"
    origin: list[Part] = [tool, " · ", Name(found.trace.file), f" ({format_bytes(found.trace.size_bytes)})"]
    return markdown_page(words.TITLE.lower(), blocks, origin, options.command, words.headline(found))


def render_html(found: WhatIf, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    facts: list[Part] = [Name(found.trace.file), f" · {format_bytes(found.trace.size_bytes)}"]
    page = Document(words.TITLE, sections(found), facts)
    return document(page, found.tool, found.settings, options)


RENDERERS: dict[str, Callable[[WhatIf, RenderOptions], bytes]] = {
    "html": render_html,
    "json": lambda found, _options: to_json(found),
    "md": render_markdown,
    "txt": render_text,
}
