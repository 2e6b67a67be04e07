"""Real traces beside each other: nothing is claimed that is not so, and whatever is compared adds up."""

from __future__ import annotations

import os
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.errors import NotComparableError
from nsysdiag.pipeline import analyze
from tests.comparison.samples import WITHOUT_TIMELINE, adds_up, part, verdicts

if TYPE_CHECKING:
    from nsysdiag.report import Report

pytestmark = [pytest.mark.real, pytest.mark.slow]

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
BEFORE, AFTER = (FOLDER / f"nsysai_mfu-2gpu-{when}_nsys2026.2.sqlite" for when in ("before", "after"))
OPPOSITE = {"improved": "regressed", "regressed": "improved", "same": "same", "unknown": "unknown"}


@cache
def report(path: Path) -> Report:
    return analyze(path, WITHOUT_TIMELINE)


def test_the_pair_before_and_after() -> None:
    """Eight iterations a side of a run whose host got slower; the kernels did not, and there the change is no fix."""
    for path in (BEFORE, AFTER):
        if not path.exists():
            pytest.skip(f"no {path.name}")
    made = compare_reports([report(BEFORE)], [report(AFTER)])
    assert made.verdict == "regressed"
    for device in made.devices:
        adds_up(device)
        assert device.length.verdict == "regressed"
        assert part(device, "compute").verdict == "same"
        assert verdicts(device)["launch_call"] == "regressed"
        assert set(verdicts(device)) <= {"idle", "launch_call", "uncovered"}
        assert {row.change.verdict for row in device.kernels} <= {"same", "unknown"}
    back = compare_reports([report(AFTER)], [report(BEFORE)])
    assert back.verdict == "improved"
    for device, other in zip(back.devices, made.devices, strict=True):
        assert {row: OPPOSITE[said] for row, said in verdicts(other).items()} == verdicts(device)


def test_every_pair_adds_up_or_is_refused() -> None:
    compared = 0
    paths = sorted(FOLDER.glob("*.sqlite"))
    for before, after in product(paths, paths):
        try:
            made = compare_reports([report(before)], [report(after)], across_gpus=True)
        except NotComparableError:
            continue
        compared += 1
        for device in made.devices:
            adds_up(device)
        if before == after:
            assert made.verdict in ("same", "unknown")
            assert all(verdicts(device) == {} for device in made.devices)
    assert compared >= min(len(paths), 1)
