"""Two sides compared as one HTML file, complete without scripts or a network: its sections, each with the values that
its template needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.drawings import strips, waterfall
from nsysdiag.comparison.show.rows import entry, flows, has_roots, least, matrix, split
from nsysdiag.comparison.show.words import Mark
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import Segment, stack
from nsysdiag.document.view import Causes, severity_rank
from nsysdiag.document.words import SEVERITY_ICONS, path_label
from nsysdiag.formats.html.assets import asset, page_script, page_style
from nsysdiag.formats.html.page import framed
from nsysdiag.units import format_signed_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import (
        Change,
        Comparison,
        DeviceComparison,
        FindingChange,
        KernelChange,
        Move,
        PartChange,
        SignatureChange,
    )
    from nsysdiag.formats.format import RenderOptions

View = dict[str, object]
MOST_PARTS, MOST_FLOWS, MOST_ROWS = 8, 6, 300


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page about one device; `view` gives None where there is nothing to draw."""

    id: str
    title: str
    view: Callable[[DeviceComparison, Causes], View | None]


@dataclass(frozen=True, slots=True)
class DrawnSection:
    """A section with its values and its place in the page."""

    id: str
    anchor: str
    title: str
    template: str
    view: View


@dataclass(frozen=True, slots=True)
class DrawnDevice:
    """A device with its verdict and its sections."""

    anchor: str
    device: DeviceComparison
    mark: Mark
    sections: list[DrawnSection]


@dataclass(frozen=True, slots=True)
class DrawnChange:
    """A part of the time or a cause, before and after."""

    entry: LegendEntry
    change: Change
    mark: Mark
    interval: str


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """Parts that add up to `whole`; `tiny` ones are folded."""

    caption: str
    rows: list[DrawnChange]
    tiny: list[DrawnChange]


@dataclass(frozen=True, slots=True)
class Flow:
    """Time that was counted as one thing and is counted as another; None where it came or went."""

    before: LegendEntry | None
    after: LegendEntry | None
    move: Move


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The whole page as UTF-8. Raises InputError where a saved comparison is damaged."""
    causes, several = Causes(comparison.causes), len(comparison.devices) > 1
    return framed(
        "compare.html",
        comparison.tool,
        page_style() + asset("compare.css"),
        page_script(),
        comparison=comparison,
        options=options,
        mark=words.verdict_mark(comparison.verdict),
        devices=[_device(f"gpu-{at}", device, causes, several) for at, device in enumerate(comparison.devices)],
        files=(words.files_label(comparison.before), words.files_label(comparison.after)),
        several=several,
    )


def _device(anchor: str, device: DeviceComparison, causes: Causes, several: bool) -> DrawnDevice:
    """Anchors are numbered where there are several devices; their keys come from the trace and stay out of them."""
    views = [(section, section.view(device, causes)) for section in SECTIONS]
    sections = [
        DrawnSection(
            section.id,
            f"{anchor}-{section.id}" if several else section.id,
            section.title,
            f"sections/compare-{section.id}.html",
            view,
        )
        for section, view in views
        if view is not None
    ]
    return DrawnDevice(anchor, device, words.verdict_mark(device.verdict), sections)


def _length(device: DeviceComparison, causes: Causes) -> View:
    rows = [row for row in device.parts if row.id != "idle"] + device.ledger
    longest = max(device.length.before_ns, device.length.after_ns)
    names = [device.name_before, *([device.name_after] if device.name_after != device.name_before else [])]
    facts = [words.unit_sentence(device.unit), words.workload_sentence(device), words.noise_sentence(device)]
    facts += device.notes
    return {
        "name": " before, ".join(names) + (" after" if len(names) > 1 else ""),
        "renamed": len(names) > 1,
        "mark": words.verdict_mark(device.verdict),
        "share": format_signed_share(device.length.change_ns, device.length.before_ns),
        "interval": words.interval_share(device.length),
        "bars": [
            ("Before", device.length.before_ns, _bar(rows, longest, causes, after=False)),
            ("After", device.length.after_ns, _bar(rows, longest, causes, after=True)),
        ],
        "legend": [
            entry(row.id, causes) for row in split(rows, device)[0] if row.change.before_ns or row.change.after_ns
        ],
        "facts": [fact for fact in facts if fact],
    }


def _bar(rows: Sequence[PartChange], longest: int, causes: Causes, *, after: bool) -> list[Segment]:
    keys = [entry(row.id, causes) for row in rows]
    times = [row.change.after_ns if after else row.change.before_ns for row in rows]
    return stack(
        ((key.label, ns, key.color or None, key.part) for key, ns in zip(keys, times, strict=True)), whole=longest
    )


def _waterfall(device: DeviceComparison, causes: Causes) -> View:
    return {"drawn": waterfall(device, causes)}


def _renaming(device: DeviceComparison, causes: Causes) -> View | None:
    if not device.moves:
        return None
    found = device.renaming
    table = matrix(device, MOST_PARTS)
    moved = flows(device)
    ids = {*table.columns, *(row.id for row in table.rows)}
    return {
        "tone": words.renaming_tone(found.verdict),
        "split": stack(
            (
                ("Gone", found.removed_ns, None, "gone"),
                ("Under another name", found.renamed_ns, None, "renamed"),
            )
        ),
        "matrix": table,
        "least": least(device),
        "entries": {id: entry(id, causes) if id else LegendEntry("Others", "idle", "") for id in ids},
        "flows": [_flow(move, causes) for move in moved[:MOST_FLOWS]],
        "more": len(moved) - MOST_FLOWS,
    }


def _flow(move: Move, causes: Causes) -> Flow:
    before, after = (entry(id, causes) if id is not None else None for id in (move.before, move.after))
    return Flow(before, after, move)


def _timelines(device: DeviceComparison, causes: Causes) -> View | None:
    drawn = strips(device, causes)
    return {"strips": drawn} if drawn else None


def _changes(device: DeviceComparison, causes: Causes) -> View | None:
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    tables = [
        ChangeTable("The parts of the time; they add up to the length.", _drawn(parts, causes), []),
        _folded("The idle time by cause; the causes add up to it.", device.ledger, device, causes),
    ]
    if has_roots(device):
        caption = "At the root: each wait counted as what the thread did that ended it. The same idle time, cut again."
        tables.append(_folded(caption, device.root_ledger, device, causes))
    held = [table for table in tables if table.rows or table.tiny]
    return {"tables": held} if held else None


def _folded(caption: str, rows: Sequence[PartChange], device: DeviceComparison, causes: Causes) -> ChangeTable:
    shown, tiny = split(rows, device)
    if not shown or len(tiny) < 2:
        shown, tiny = list(rows), []
    return ChangeTable(caption, _drawn(shown, causes), _drawn(tiny, causes))


def _drawn(rows: Sequence[PartChange], causes: Causes) -> list[DrawnChange]:
    return [
        DrawnChange(
            entry(row.id, causes), row.change, words.change_mark(row.change.verdict), words.interval_ns(row.change)
        )
        for row in rows
    ]


def _signatures(device: DeviceComparison, causes: Causes) -> View | None:
    if not device.signatures:
        return None
    rows = [
        (
            *_changed(row),
            *(entry(cause, causes) if cause else None for cause in (row.cause_before, row.cause_after)),
            path_label(row.nvtx),
            *(words.count_label(count) for count in (row.count_before, row.count_after)),
        )
        for row in device.signatures[:MOST_ROWS]
    ]
    unknown = any(row.change.verdict == "unknown" for row in device.signatures)
    return {"rows": rows, "all": len(device.signatures), "unknown": unknown}


def _changed(row: SignatureChange | KernelChange) -> tuple[object, ...]:
    """The row, the side that has it, and what its change amounts to."""
    change = row.change
    return row, words.status_word(row.status), words.change_mark(change.verdict), words.interval_ns(change)


def _kernels(device: DeviceComparison, _causes: Causes) -> View | None:
    if not device.kernels:
        return None
    rows = [
        (
            *_changed(row),
            *(words.count_label(count) for count in (row.count_before, row.count_after)),
        )
        for row in device.kernels[:MOST_ROWS]
    ]
    return {"rows": rows, "all": len(device.kernels)}


def _copies(device: DeviceComparison, _causes: Causes) -> View | None:
    if not (device.copies or device.communication):
        return None
    counts = words.count_label
    return {
        "copies": [(row, counts(row.count_before), counts(row.count_after)) for row in device.copies[:MOST_ROWS]],
        "collectives": [
            (row, counts(row.count_before), counts(row.count_after)) for row in device.communication[:MOST_ROWS]
        ],
    }


def _metrics(device: DeviceComparison, _causes: Causes) -> View | None:
    tables = [
        ("How the work was launched.", device.launch),
        ("How the GPU was used, as shares of the window.", device.utilization),
    ]
    label, change = words.metric_label, words.metric_change
    drawn = [
        (caption, [(row, label(row, row.before), label(row, row.after), change(row)) for row in rows])
        for caption, rows in tables
        if rows
    ]
    return {"tables": drawn} if drawn else None


def _findings(device: DeviceComparison, causes: Causes) -> View | None:
    if not device.findings:
        return None
    rows = [
        (row, words.status_word(row.status), entry(row.cause, causes), _severities(row))
        for row in device.findings[:MOST_ROWS]
    ]
    return {"rows": rows, "hidden": any(row.status == "not_compared" for row in device.findings)}


def _severities(row: FindingChange) -> tuple[str, str, int]:
    """Both severities with their signs, and the rank of the worse one."""
    shown = [
        f"{SEVERITY_ICONS.get(each, '')} {each}".strip() if each else ""
        for each in (row.severity_before, row.severity_after)
    ]
    ranks = [severity_rank(each) for each in (row.severity_before, row.severity_after) if each]
    return shown[0], shown[1], min(ranks, default=severity_rank(""))


SECTIONS = (
    Section("length", "Length before and after", _length),
    Section("waterfall", "From before to after", _waterfall),
    Section("renaming", words.RENAMING, _renaming),
    Section("timelines", "Both timelines on one scale", _timelines),
    Section("changes", "What changed", _changes),
    Section("signatures", "Recurring gaps", _signatures),
    Section("kernels", "Kernels", _kernels),
    Section("copies", "Copies and communication", _copies),
    Section("metrics", "Launches and utilization", _metrics),
    Section("findings", "Findings", _findings),
)
