"""`nsysdiag info`: what a trace is and what it can tell, without analysing it."""

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import emit_text
from nsysdiag.messages import JSON, printable
from nsysdiag.shortage import Attempt

if TYPE_CHECKING:
    from nsysdiag.cli.facts import TraceFacts

EPILOG = """\b
Examples:
  nsysdiag info train.sqlite
  nsysdiag info train.sqlite --format json"""


class InfoFormat(StrEnum):
    """How the facts are shown."""

    TEXT = "text"
    JSON = "json"


def info(
    trace: options.TraceArgument,
    *,
    format_name: Annotated[InfoFormat, typer.Option("--format", metavar="F", help="text or json.")] = InfoFormat.TEXT,
    debug: options.DebugOption = False,
) -> None:
    """Say what a trace holds, and what it lacks.

    Shows versions, devices, tables and the kinds of evidence, with the nsys option that brings a missing one.
    """
    import msgspec

    from nsysdiag.cli.facts import as_json, gather
    from nsysdiag.trace.trace import open_trace

    with Attempt(f"read '{printable(trace)}'"), open_trace(Path(trace)) as opened:
        facts = gather(opened)
    if format_name is InfoFormat.JSON:
        emit_text(as_json(msgspec.to_builtins(facts)), JSON)
    else:
        emit_text(_text(facts))


def _text(facts: "TraceFacts") -> str:
    from nsysdiag.cli.facts import aligned

    tables = [(name, str(rows)) for name, rows in facts.tables.items() if not name.startswith("ENUM_")]
    evidence = [
        (each.id, "yes" if each.available else "no", "; nsys profile ".join(filter(None, (each.why, each.recapture))))
        for each in facts.capabilities
    ]
    sections = [
        aligned(("file", facts.file), _facts_rows(facts)),
        aligned(("table", "rows"), tables),
        aligned(("evidence", "here", "why, and what brings it"), evidence),
        *(f"warning: {printable(warning)}\n" for warning in facts.warnings),
    ]
    return "\n".join(sections)


def _facts_rows(facts: "TraceFacts") -> list[tuple[str, str]]:
    from nsysdiag.units import format_bytes, format_count, format_ns

    gpus = []
    for gpu, count in Counter(facts.gpus).items():
        known = [gpu.name]
        unit = "CUs" if "AMD" in gpu.name else "SMs"
        known += [f"{gpu.sm_count} {unit}"] if gpu.sm_count and unit not in gpu.name else []
        known += [format_bytes(gpu.memory_bytes)] if gpu.memory_bytes else []
        gpus.append(("gpu", f"{count} x {', '.join(known)}"))
    return [
        ("size", format_bytes(facts.size_bytes)),
        ("recorded by", facts.recorder) if facts.recorder else ("nsys", facts.nsys_version or "unknown version"),
        ("schema", facts.schema_version or "unknown version"),
        ("capture", "unknown length" if facts.capture_ns is None else format_ns(facts.capture_ns)),
        *(gpus or [("gpu", "none listed")]),
        ("processes", format_count(facts.processes)),
        ("threads", format_count(facts.threads)),
    ]
