"""The files of a bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from nsysdiag import pipeline
from nsysdiag.config.settings import Settings
from nsysdiag.formats.format import RenderOptions
from nsysdiag.formats.registry import FORMATS
from nsysdiag.pipeline.stages import Progress
from nsysdiag.report import Report
from nsysdiag.share.bundle.archive import packed
from nsysdiag.share.bundle.slicing import Slice, slice_of
from nsysdiag.share.bundle.summary import absent_blocks, slice_blocks
from nsysdiag.share.redaction import Names, redacted_by
from nsysdiag.share.redaction.slice_names import SliceNames
from nsysdiag.trace.trace import Trace

REPORT, SUMMARY, FINDINGS, SLICE = "report.html", "summary.md", "findings.json", "trace.sqlite"
NAMES = (FINDINGS, REPORT, SUMMARY, SLICE)
_OF_FINDINGS = ("schema_version", "tool", "findings")
_OF_TRACE = ("file", "fingerprint", "size_bytes", "nsys_version", "export_schema_version")
_OF_DEVICES = ("key", "name", "window_ns", "idle_ns", "ledger", "root_ledger", "verdict")


class Bundle(msgspec.Struct, frozen=True):
    """A finished zip, and the slice in it; the file that it names is gone. `slice_bytes` is None where the slice was
    left out."""

    data: bytes
    slice: Slice
    slice_bytes: int | None


def bundle_of(
    trace: Trace,
    settings: Settings,
    folder: Path,
    options: Callable[[Report], RenderOptions],
    progress: Progress | None = None,
    names: Names | None = None,
) -> Bundle:
    """The bundle of an open trace; `folder` is an empty one for temporary files.

    With `names`, which must be new, all files hold pseudonyms; a slice that shows other results without its names is
    left out.

    Raises UsageError for settings that do not fit, InputError if the trace cannot be read."""
    report = pipeline.analyze_trace(trace, settings, progress)
    if progress:
        progress("cutting a slice", 0.97)
    shown = redacted_by(report, names) if names else report  # before the slice: numbers follow the report
    part = slice_of(trace, report, settings, folder, SliceNames(names).of if names else None)
    kept = part.alike or names is None
    blocks = slice_blocks(report, part, renamed=names is not None) if kept else absent_blocks(part)
    chosen = options(shown)
    contents: dict[str, bytes | Path] = {
        REPORT: FORMATS["html"].render(shown, chosen),
        SUMMARY: FORMATS["md"].render(shown, chosen) + ("\n" + "\n\n".join(blocks) + "\n").encode(),
        FINDINGS: findings_json(shown),
    }
    if kept:
        contents[SLICE] = part.path
    return Bundle(packed(contents), part, part.path.stat().st_size if kept else None)


def findings_json(report: Report) -> bytes:
    """Findings with their evidence, and the devices and the trace that they are about: UTF-8 JSON, keys sorted."""
    content = {name: getattr(report, name) for name in _OF_FINDINGS}
    content["trace"] = {name: getattr(report.trace, name) for name in _OF_TRACE}
    content["devices"] = [{name: getattr(device, name) for name in _OF_DEVICES} for device in report.devices]
    return msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=2) + b"\n"
