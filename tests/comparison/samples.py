"""Reports of programs, made in memory as far as the reader of traces allows."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import Change, Comparison, DeviceComparison
    from nsysdiag.report import Report
    from tests.comparison.programs import Program
    from tests.simulator.capture import Capture

WITHOUT_TIMELINE = Settings(timeline=False, replay=False)


@cache
def report_of(program: Program, capture: Capture | None = None) -> Report:
    """The report of one run of the program, which no test changes."""
    with TemporaryDirectory() as folder:
        return analyze(program.write(Path(folder) / f"run-{program.seed}.sqlite", capture), WITHOUT_TIMELINE)


def beside(reports: Sequence[Report]) -> Report:
    """Their devices as those of one trace, gpu0 from the first."""
    devices = [msgspec.structs.replace(each.devices[0], key=f"gpu{at}") for at, each in enumerate(reports)]
    return msgspec.structs.replace(reports[0], devices=devices)


def only(comparison: Comparison) -> DeviceComparison:
    """Its only device."""
    (device,) = comparison.devices
    return device


def part(device: DeviceComparison, name: str) -> Change:
    """The change of a part of the time, or of a cause; of a cause that neither side has, nothing."""
    found = [row.change for row in (*device.parts, *device.ledger) if row.id == name]
    assert len(found) == 1, f"{name} is there {len(found)} times"
    return found[0]


def verdicts(device: DeviceComparison) -> dict[str, str]:
    """What is said of each part and cause, where it is a change."""
    rows = (*device.parts, *device.ledger)
    return {row.id: row.change.verdict for row in rows if row.change.verdict not in ("same", "unknown")}


def adds_up(device: DeviceComparison) -> None:
    """The way from before to after, the parts, both ledgers, and what moved: exactly."""
    length = device.length
    assert sum(step.change_ns for step in device.waterfall) == length.change_ns == length.after_ns - length.before_ns
    idle = part(device, "idle")
    for ledger in (device.ledger, device.root_ledger):
        assert sum(row.change.before_ns for row in ledger) == idle.before_ns
        assert sum(row.change.after_ns for row in ledger) == idle.after_ns
    assert sum(row.change.before_ns for row in device.parts) == length.before_ns
    assert sum(row.change.after_ns for row in device.parts) == length.after_ns
    for row in (*(each for each in device.parts if each.id != "idle"), *device.ledger):
        assert sum(move.ns for move in device.moves if move.before == row.id) == row.change.before_ns
        assert sum(move.ns for move in device.moves if move.after == row.id) == row.change.after_ns
    assert all(move.ns > 0 and 0 <= move.seen_ns <= move.ns for move in device.moves)
    assert device.renaming.lost_ns == device.renaming.removed_ns + device.renaming.renamed_ns
