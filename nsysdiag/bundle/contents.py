"""The files of a bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nsysdiag import pipeline
from nsysdiag.bundle.archive import packed
from nsysdiag.bundle.slicing import Slice, slice_of
from nsysdiag.bundle.summary import slice_blocks
from nsysdiag.config import Settings
from nsysdiag.model import Report
from nsysdiag.output.format import RenderOptions
from nsysdiag.output.registry import FORMATS
from nsysdiag.trace.trace import Trace

REPORT, SUMMARY, FINDINGS, SLICE = "report.html", "summary.md", "findings.json", "trace.sqlite"
NAMES = (FINDINGS, REPORT, SUMMARY, SLICE)
_OF_FINDINGS = ("schema_version", "tool", "findings")
_OF_TRACE = ("file", "fingerprint", "size_bytes", "nsys_version", "export_schema_version")
_OF_DEVICES = ("key", "name", "window_ns", "idle_ns", "ledger", "root_ledger", "verdict")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A finished zip, and the slice in it; the file that it names is gone."""

    data: bytes
    slice: Slice
    slice_bytes: int


def bundle_of(
    trace: Trace,
    settings: Settings,
    folder: Path,
    options: Callable[[Report], RenderOptions],
    progress: pipeline.Progress | None = None,
) -> Bundle:
    """The bundle of an open trace; `folder` is an empty one for files of the meantime.

    Raises UsageError for settings that do not fit, InputError where the trace cannot be read."""
    report = pipeline.analyze_trace(trace, settings, progress)
    if progress:
        progress("cutting a slice", 0.97)
    part = slice_of(trace, report, settings, folder)
    chosen = options(report)
    contents: dict[str, bytes | Path] = {
        REPORT: FORMATS["html"].render(report, chosen),
        SUMMARY: FORMATS["md"].render(report, chosen) + _section(report, part),
        FINDINGS: findings_json(report),
        SLICE: part.path,
    }
    return Bundle(packed(contents), part, part.path.stat().st_size)


def _section(report: Report, part: Slice) -> bytes:
    return ("\n" + "\n\n".join(slice_blocks(report, part)) + "\n").encode()


def findings_json(report: Report) -> bytes:
    """Findings with their evidence, and the devices and the trace that they are about: UTF-8 JSON, keys sorted."""
    content = {name: getattr(report, name) for name in _OF_FINDINGS}
    content["trace"] = {name: getattr(report.trace, name) for name in _OF_TRACE}
    content["devices"] = [{name: getattr(device, name) for name in _OF_DEVICES} for device in report.devices]
    return msgspec.json.format(msgspec.json.encode(content, order="sorted"), indent=2) + b"\n"
