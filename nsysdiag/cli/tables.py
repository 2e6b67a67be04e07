"""What `baseline list` shows: baselines and their runs; and small tables as text, Markdown and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nsysdiag.baselines import BaselineRun, folder_of, held_in, read_accepted, runs_in
from nsysdiag.ci.acceptances import today
from nsysdiag.messages import printable
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.report import Report


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Columns padded to their widest cell, a space of two between; names are made safe for a terminal."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{indent}{line.rstrip()}\n" for line in lines)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A GitHub table; a pipe inside a cell is escaped."""
    cells = [[printable(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_json(value: object) -> str:
    """Indented JSON, keys sorted, one final newline: same value, same text."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


UNKNOWN = "–"
OF_ALL = ("name", "runs", "latest run", "accepted")
OF_RUNS = ("run", "added (UTC)", "trace", "step", "GPUs")
OF_ACCEPTED = ("accepted up to", "until", "state", "reason")


def all_listed(baselines: Path, names: Sequence[str]) -> str:
    """A row for each baseline."""
    rows = []
    for name in names:
        folder = folder_of(baselines, name)
        runs = runs_in(folder)
        open_ones = sum(each.until >= today() for each in read_accepted(folder))
        rows.append((name, f"{len(runs):,}", _added(runs[-1]) if runs else UNKNOWN, f"{open_ones:,}"))
    return aligned(OF_ALL, rows)


def one_listed(folder: Path) -> str:
    """A row for each run, the oldest first, and one for each accepted regression; and what cannot be read."""
    held, accepted = held_in(folder), read_accepted(folder)
    text = aligned(OF_RUNS, [_run(*each) for each in held.runs]) if held.runs else "No run.\n"
    text += "".join(f"Damaged: {printable(name)}\n" for name in held.damaged)
    if accepted:
        rows = [
            (
                each.expression.text,
                each.until.isoformat(),
                "accepted" if each.until >= today() else "expired",
                each.reason,
            )
            for each in accepted
        ]
        text += f"\n{aligned(OF_ACCEPTED, rows)}"
    return text


def _run(run: BaselineRun, report: Report) -> tuple[str, ...]:
    steps = [device.iterations.p50_ns for device in report.devices if device.iterations and device.iterations.steady]
    names = dict.fromkeys(device.name for device in report.devices)
    gpus = f"{len(report.devices)} × {', '.join(names)}"
    return run.path.name, _added(run), report.trace.file, format_ns(max(steps)) if steps else UNKNOWN, gpus


def _added(run: BaselineRun) -> str:
    return run.added.strftime("%Y-%m-%d %H:%M:%S") if run.added else UNKNOWN
