"""Gets a report: from a trace by analysis, or from a saved report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.cli.progress import progress_bar
from nsysdiag.errors import InputError

if TYPE_CHECKING:
    from nsysdiag.config import Settings
    from nsysdiag.model import Report

SNIFFED_BYTES = 64


def is_saved_report(path: Path) -> bool:
    """Whether the file starts like JSON. A trace never does, whatever it is called."""
    if not path.is_file():  # reading the start of a pipe would eat it
        return False
    try:
        with path.open("rb") as file:
            return file.read(SNIFFED_BYTES).lstrip().startswith(b"{")
    except OSError:
        return False  # the analysis opens it again and says what is wrong


def analyze_trace(path: Path, settings: Settings, *, quiet: bool) -> Report:
    """Analyse a trace, with a progress bar where somebody watches. Raises InputError and UsageError."""
    from nsysdiag import pipeline

    with progress_bar(quiet=quiet) as progress:
        return pipeline.analyze(path, settings, progress)


def read_report(path: Path) -> Report:
    """A report that was saved as JSON. Raises InputError where it is none, or of another schema version."""
    import msgspec

    from nsysdiag.model import from_json

    data = _read_bytes(path)
    _require_our_report(path, data)
    try:
        return from_json(data)
    except msgspec.DecodeError as error:  # of which ValidationError is one
        raise InputError(
            f"{path} is a damaged nsysdiag report: {error}",
            hint="save it again with 'nsysdiag analyze TRACE -o report.json'",
        ) from error


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _require_our_report(path: Path, data: bytes) -> None:
    import msgspec

    from nsysdiag.model import SCHEMA_VERSION

    class Head(msgspec.Struct):
        schema_version: str
        tool: dict[str, str]

    hint = "save one with 'nsysdiag analyze TRACE -o report.json'"
    try:
        head = msgspec.json.decode(data, type=Head)
    except msgspec.DecodeError as error:
        raise InputError(f"{path} is not a nsysdiag report: {error}", hint=hint) from error
    if head.tool.get("name") != "nsysdiag":
        raise InputError(f"{path} is JSON, but not a nsysdiag report", hint=hint)
    if head.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{path} has schema version {head.schema_version}; this nsysdiag reads {SCHEMA_VERSION}",
            hint=f"nsysdiag {head.tool.get('version', '?')} wrote it: read it with that, or analyse again",
        )
