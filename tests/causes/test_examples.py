"""Every cause by examples: those in which it takes time, and near misses in which it must not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from _pytest.mark import ParameterSet

from nsysdiag.causes import CAUSES, FALLBACK
from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.causes import call_examples, device_examples, gap_examples, host_examples  # noqa: F401
from tests.causes.example import EXAMPLES
from tests.levels import some

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport, Report
    from tests.causes.example import Example, Ledgered


def parameters() -> list[ParameterSet]:
    """The first of each kind is quick."""
    seen = Counter[tuple[str, bool]]()
    found = []
    for example in EXAMPLES:
        seen[example.cause, example.fires] += 1
        marks = pytest.mark.slow if seen[example.cause, example.fires] > QUICK else ()
        found.append(pytest.param(example, id=example.name, marks=marks))
    return found


QUICK = 1
"""How many examples of a cause are quick tests, of those in which it fires and of the near misses."""
FIRING = [each for each in EXAMPLES if each.fires and each.cause != FALLBACK]


def device_of(report: Report, key: str | None) -> DeviceReport:
    (device,) = [device for device in report.devices if key in (None, device.key)]
    return device


def run(case: Ledgered, path: Path, *, shuffle_seed: int | None = None) -> DeviceReport:
    return device_of(analyze(case.trace.write(path, shuffle_seed=shuffle_seed), case.settings), case.key)


def check_sums(device: DeviceReport) -> None:
    """No slice is longer than its gap, every gap adds up, and so does the device."""
    assert sum(device.ledger.values()) == device.idle_ns
    for gap in device.gaps:
        assert all(0 < part.ns <= gap.end_ns - gap.start_ns for part in gap.slices)
        assert sum(part.ns for part in gap.slices) == gap.end_ns - gap.start_ns


@pytest.mark.parametrize("cause", [cause.id for cause in CAUSES.values() if cause.side != "root"])
def test_every_cause_has_examples_of_both_kinds(cause: str) -> None:
    assert {example.fires for example in EXAMPLES if example.cause == cause} == {True, False}


def test_every_example_is_of_a_cause() -> None:
    assert {example.cause for example in EXAMPLES} <= set(CAUSES)
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.sampled(quick=81, normal=3)
@pytest.mark.parametrize("example", parameters())
def test_the_ledger_is_what_the_picture_says(example: Example, tmp_path: Path) -> None:
    assert "device" in (example.build.__doc__ or ""), "an example shows its case"
    case = example.build()
    device = run(case, tmp_path / "trace.sqlite")
    assert device.ledger == case.ledger
    assert (example.cause in device.ledger) == example.fires
    assert {cause: device.labels.get(cause) for cause in case.labels} == case.labels
    check_sums(device)
    for cause, text in case.evidence.items():
        assert text in {part.evidence for gap in device.gaps for part in gap.slices if part.cause == cause}


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("example", some(EXAMPLES, 12), ids=lambda example: example.name)
def test_the_order_of_rows_means_nothing(example: Example, tmp_path: Path) -> None:
    case = example.build()
    device = run(case, tmp_path / "trace.sqlite", shuffle_seed=3)
    assert device.ledger == case.ledger
    assert {cause: device.labels.get(cause) for cause in case.labels} == case.labels


@pytest.mark.slow
@pytest.mark.parametrize("example", some(FIRING, 12), ids=lambda example: example.name)
def test_a_disabled_cause_takes_nothing(example: Example, tmp_path: Path) -> None:
    case = example.build()
    report = analyze(case.trace.write(tmp_path / "trace.sqlite"), Settings(disabled=(example.cause,)))
    device = device_of(report, case.key)
    assert example.cause not in device.ledger
    assert sum(device.ledger.values()) == device.idle_ns == sum(case.ledger.values())


def test_what_coverage_leaves_out_and_what_counts_as_untold() -> None:
    unresolved = {cause.id for cause in CAUSES.values() if cause.unresolved}
    accepted = {cause.id for cause in CAUSES.values() if cause.accepted}
    on_the_device = {"host_function", "stream_wait", "stream_barrier", "gpu_context_switch", "device_stall"}
    assert unresolved == {"uncovered", "blocked", "launch_unknown", "graph_untraced"}
    assert accepted == {"dispatch", "intra_graph", "unified_memory"} | on_the_device
    assert {cause.id for cause in CAUSES.values() if cause.side == "device"} == on_the_device
    assert {cause.side for cause in CAUSES.values()} == {"gap", "host", "call", "device", "root"}
