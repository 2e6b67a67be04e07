"""The files of a bundle."""

from __future__ import annotations

import io
import os
import shutil
import stat
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from nsysdiag.config.settings import Settings
from nsysdiag.document import words
from nsysdiag.document.names import table, text
from nsysdiag.document.one_line import command_of
from nsysdiag.document.view import Causes, window_parts
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.pipeline.analysis import analyze_trace
from nsysdiag.pipeline.reading import Progress
from nsysdiag.process import private_folder, source_date_epoch
from nsysdiag.report import CauseInfo, DeviceReport, Report
from nsysdiag.share.names import Names
from nsysdiag.share.redaction import redacted_by
from nsysdiag.share.slice_names import SliceNames
from nsysdiag.share.slicing import SlicePair, TraceSlice, slice_of
from nsysdiag.trace.trace import open_trace
from nsysdiag.units import format_ns, format_share

# The zip itself: the same bytes for the same contents, and a mark by which a later run recognizes its own file.

MARKER = b"nsysdiag bundle"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold."""
_READABLE = stat.S_IFREG | 0o644
_UNIX = 3


def packed(contents: Mapping[str, bytes | Path]) -> bytes:
    """A zip of named contents, or files, in the order of their names, all with the time SOURCE_DATE_EPOCH, or
    1980-01-01 if that is not set."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = MARKER
        for name in sorted(contents):
            _add(archive, name, contents[name])
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes | Path) -> None:
    known = time.gmtime(source_date_epoch() or 0)
    # A zip counts in steps of two seconds, up to 2107.
    date = (*known[:5], known.tm_sec // 2 * 2) if EARLIEST[0] <= known.tm_year <= 2107 else EARLIEST
    info = zipfile.ZipInfo(name, date)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = _READABLE << 16
    if isinstance(content, bytes):
        archive.writestr(info, content)
        return
    info.file_size = content.stat().st_size  # so that a very large one gets the longer header
    with content.open("rb") as source, archive.open(info, "w") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def is_ours(data: bytes) -> bool:
    """Does the zip carry our mark?"""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.comment == MARKER
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return False


# What the slice of a bundle covers and how it compares with the whole trace, as Markdown and in one sentence.

TITLE = "## The slice in trace.sqlite"
SMALLEST_SHARE = 0.001
"""Of the window: causes below it in both are left out."""
_ABSENT = "–"


RENAMED = (
    "Names are replaced as in the report, with a dot in them (kernel·7 is kernel 7). A word next to one (data_loader, "
    "torch::, /lib/) tells the kind of the name."
)
LEFT_OUT = "trace.sqlite is left out: without its names no slice shows what the trace shows"


def slice_blocks(report: Report, part: TraceSlice, *, renamed: bool = False) -> list[str]:
    """The section of summary.md, block by block."""
    sentence = f"{coverage(part)}. {left_out(part, renamed=renamed)}"
    blocks = [TITLE, text(sentence)]
    differing = differences(part)
    if differing:
        blocks += [
            "**The slice does not show all that the trace shows.**",
            "\n".join(f"- {text(d)}" for d in differing),
        ]
    elif part.pairs:
        blocks.append(text("Analyzed by itself it has the verdict of the trace, and the same cause leads."))
    causes = Causes(report.causes)
    rows = [row for pair in part.pairs if pair.full.window_ns for row in _rows(pair, causes)]
    header = ["Device", "Share of the window", "Trace", "Slice"]
    return [*blocks, table(header, "llrr", rows)] if rows else blocks


def coverage(part: TraceSlice) -> str:
    """`trace.sqlite holds 62.0 ms of 3.10 s: iterations 12 to 20, from 0.123 s to 0.185 s`."""
    span = part.span
    if span is None and any(pair.full.window_ns for pair in part.pairs):
        return "trace.sqlite holds all events: no part of the trace represents the whole"
    if span is None:
        return "trace.sqlite holds all events: nothing ran on a GPU, so no part represents the whole"
    if part.whole:
        return f"trace.sqlite holds the whole window of {format_ns(span.end_ns - span.start_ns)}"
    windows = [pair.full.window for pair in part.pairs if pair.full.window_ns]
    whole = max(window.end_ns for window in windows) - min(window.start_ns for window in windows)
    what = f"trace.sqlite holds {format_ns(span.end_ns - span.start_ns)} of {format_ns(whole)}: "
    if span.iterations is not None:
        first, behind = span.iterations
        what += f"iterations {first} to {behind - 1}, "
    return f"{what}from {words.instant(span.start_ns)} to {words.instant(span.end_ns)}"


def absent_blocks(part: TraceSlice) -> list[str]:
    """The section if there is no slice."""
    return [TITLE, text(f"{LEFT_OUT}."), "\n".join(f"- {text(each)}" for each in differences(part))]


def left_out(part: TraceSlice, *, renamed: bool = False) -> str:
    """What of the trace is not in the slice, as a sentence."""
    private = (
        "the environment, the command line, the host, other programs and names that nothing refers to are not in it"
    )
    lean = "Call chains, and CPU samples of threads that launch nothing, were left out. " if part.lean else ""
    names = f". {RENAMED}" if renamed else "; of paths it has the last part."
    return f"{lean}{private[0].upper()}{private[1:]}{names}"


def differences(part: TraceSlice) -> list[str]:
    """A sentence for each device that looks otherwise in the slice; none if all look alike."""
    return [_difference(pair) for pair in part.pairs if not pair.alike]


def _difference(pair: SlicePair) -> str:
    full = pair.full
    if pair.part is None:
        return f"{full.key} is {full.verdict.id} in the trace, and nothing of it is in the slice"
    if full.verdict.id != pair.part.verdict.id:
        return f"{full.key} is {full.verdict.id} in the trace and {pair.part.verdict.id} in the slice"
    return f"{full.key} is {full.verdict.id} in both, but another cause leads in the slice"


def _rows(pair: SlicePair, causes: Causes) -> Iterator[list[str]]:
    """The verdict, the parts of the window, and the causes of idle time."""
    key, full, part = text(pair.full.key), pair.full, pair.part
    yield [key, "Verdict", text(full.verdict.id), text(part.verdict.id) if part else _ABSENT]
    parts = window_parts(part) if part else [None] * len(window_parts(full))
    for one, other in zip(window_parts(full), parts, strict=True):
        yield [key, one.label, format_share(one.ns, full.window_ns), _share(part, other.ns if other else 0)]
    for cause in _causes(pair, causes):
        shares = [_share(device, device.ledger.get(cause.id, 0) if device else 0) for device in (full, part)]
        yield [key, text(f"Idle: {cause.title}"), *shares]


def _share(device: DeviceReport | None, ns: int) -> str:
    return _ABSENT if device is None or not device.window_ns else format_share(ns, device.window_ns)


def _causes(pair: SlicePair, causes: Causes) -> list[CauseInfo]:
    """The causes that matter in either, those of the trace first, by their time."""
    devices = [device for device in (pair.full, pair.part) if device and device.window_ns]
    matter = {
        cause: device.ledger[cause]
        for device in reversed(devices)
        for cause in device.ledger
        if device.ledger[cause] >= SMALLEST_SHARE * device.window_ns
    }
    ordered = sorted(matter, key=lambda cause: (-pair.full.ledger.get(cause, 0), -matter[cause], cause))
    return [causes[cause] for cause in ordered]


REPORT, SUMMARY, FINDINGS, SLICE = "report.html", "summary.md", "findings.json", "trace.sqlite"
NAMES = (FINDINGS, REPORT, SUMMARY, SLICE)
_OF_FINDINGS = ("schema_version", "tool", "findings")
_OF_TRACE = ("file", "fingerprint", "size_bytes", "nsys_version", "export_schema_version")
_OF_DEVICES = ("key", "name", "window_ns", "idle_ns", "ledger", "root_ledger", "verdict")


class Bundle(msgspec.Struct, frozen=True):
    """A finished zip, and the slice in it; the file that it names is gone. `slice_bytes` is None if the slice was
    left out."""

    data: bytes
    slice: TraceSlice
    slice_bytes: int | None


def bundle_of(
    source: str | os.PathLike[str], settings: Settings, progress: Progress | None = None, *, redact: bool = False
) -> Bundle:
    """The bundle of a trace. With `redact`, all files hold pseudonyms; a slice that shows other results without its
    names is left out.

    Raises UsageError for settings that do not fit, InputError if the trace cannot be read."""
    names = Names() if redact else None
    with private_folder() as folder, open_trace(source) as trace:
        report = analyze_trace(trace, settings, progress)
        if progress:
            progress("cutting a slice", 0.97)
        shown = redacted_by(report, names) if names else report  # before the slice: numbers follow the report
        part = slice_of(trace, report, settings, folder, SliceNames(names).of if names else None)
        kept = part.alike or not redact
        blocks = slice_blocks(report, part, renamed=redact) if kept else absent_blocks(part)
        options = RenderOptions(command=command_of(shown))
        contents: dict[str, bytes | Path] = {
            REPORT: FORMATS["html"].render(shown, options),
            SUMMARY: FORMATS["md"].render(shown, options) + ("\n" + "\n\n".join(blocks) + "\n").encode(),
            FINDINGS: findings_json(shown),
            **({SLICE: part.path} if kept else {}),
        }
        return Bundle(packed(contents), part, part.path.stat().st_size if kept else None)


def findings_json(report: Report) -> bytes:
    """Findings with their evidence, and the devices and the trace that they are about: UTF-8 JSON, keys sorted."""
    content = {name: getattr(report, name) for name in _OF_FINDINGS}
    content["trace"] = {name: getattr(report.trace, name) for name in _OF_TRACE}
    content["devices"] = [{name: getattr(device, name) for name in _OF_DEVICES} for device in report.devices]
    return msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=2) + b"\n"
