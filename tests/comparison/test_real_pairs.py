"""Real traces beside each other: nothing is claimed that is not so, and whatever is compared adds up."""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import compare
from nsysdiag.comparison.compare import compare_reports
from nsysdiag.messages import NotComparableError
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


@pytest.mark.thorough
def test_the_pair_before_and_after() -> None:
    """Each side is a slice of one forward pass: its repeats are layers, and the slices show no change of a program."""
    for path in (BEFORE, AFTER):
        if not path.exists():
            pytest.skip(f"no {path.name}")
    made = compare_reports([report(BEFORE)], [report(AFTER)])
    assert made.verdict == "unknown"
    assert "1.13× longer" in made.headline
    assert "does not show what the change did" in made.headline
    assert not re.search("faster|slower|iteration|training|step time", made.headline, re.IGNORECASE)
    assert not re.search("faster|slower|iteration", made.sentence, re.IGNORECASE)
    for device in made.devices:
        adds_up(device)
        assert device.verdict == "unknown"
        assert device.unit.part_of_step
        compute = part(device, "compute")
        assert compute.after_ns == pytest.approx(compute.before_ns, rel=0.02)  # the kernels are the same
        assert part(device, "idle").after_ns > part(device, "idle").before_ns
        assert {row.change.verdict for row in device.kernels} <= {"same", "unknown"}
    back = compare_reports([report(AFTER)], [report(BEFORE)])
    assert back.verdict == "unknown"
    assert "shorter" in back.headline
    for device, other in zip(back.devices, made.devices, strict=True):
        assert {row: OPPOSITE[said] for row, said in verdicts(other).items()} == verdicts(device)


@pytest.mark.thorough
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


def test_layers_of_a_prefill_and_of_a_decode_are_no_faster_step() -> None:
    """One pass each, of the same model: what runs in a layer is other work. It was "14.91× faster"."""
    traces = [FOLDER / "pytorch" / f"vllm_{name}.pt.trace.json.gz" for name in ("piecewise", "full-graph_decode")]
    for path in traces:
        if not path.exists():
            pytest.skip(f"no {path.name}")
    with pytest.raises(NotComparableError):
        compare_reports([report(traces[0])], [report(traces[1])])
    made = compare(*traces)  # with the steps of one carried to the other
    assert made.verdict == "unknown"
    assert not re.search("faster|slower", made.headline)
    (device,) = made.devices
    assert device.unit.part_of_step
    assert any("Layers of one pass" in str(note) for note in device.notes)
