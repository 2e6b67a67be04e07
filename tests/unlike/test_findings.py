"""Findings on one cause at one place: each is about its own part, and saves what is true of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag import analyze
from nsysdiag.diagnosis.facts import REPLAY
from nsysdiag.findings.facts import Finding
from tests.unlike import CLASSES, Made
from tests.unlike.made import lengths
from tests.unlike.test_unlike import SLACK

READ_BACKS, COPIES = "sync", "copies"
"""The bottlenecks of two kinds of copies for which the host waits."""


def _findings(name: str, made: Made, folder: Path, cause: str) -> list[Finding]:
    kind = CLASSES[name]
    trace = kind.run(made)[0].write(folder / "trace.sqlite", kind.capture)
    found = analyze(trace).findings
    return [each for each in found if each.cause == cause and each.saves and each.saves.method == REPLAY]


@pytest.mark.parametrize(("seed", "found"), [(1, {READ_BACKS, COPIES}), (2, {READ_BACKS})])
def test_values_that_are_read_back_are_no_copies_to_pageable_memory(seed: int, found: set[str], tmp_path: Path) -> None:
    """Each of both findings was to save what both save, for certain: 19 to 34% of 8% and of 22%."""
    name = "partitions_that_spill"
    made = CLASSES[name].made(seed)
    saved = {
        bottleneck: 1 - lengths(CLASSES[name].run(made.but(**change))[1]) / lengths(CLASSES[name].run(made)[1])
        for bottleneck, change in ((READ_BACKS, {"waits": False}), (COPIES, {"pinned": True}))
    }
    findings = _findings(name, made, tmp_path, "blocking_copy")
    assert {each.bottleneck for each in findings} == found
    for each in findings:
        assert each.saves is not None
        low, likely, high = (ns / each.saves.of_ns for ns in (each.saves.low_ns, each.saves.ns, each.saves.high_ns))
        true = saved[str(each.bottleneck)]
        assert true.max() >= low - SLACK
        assert true.min() <= high + SLACK
        assert likely == pytest.approx(float(true.mean()), abs=0.02)


def test_host_code_that_a_finding_at_a_place_is_about_is_left_to_it(tmp_path: Path) -> None:
    """Host code of one GPU was to save what code in a range saves, which has a finding of its own on the other GPU."""
    name = "prefill_and_decode_apart"
    findings = _findings(name, CLASSES[name].made(7), tmp_path, "host_compute")
    saved = [each.saves.ns for each in findings if each.saves is not None and each.saves.ns]
    assert len(saved) == len({*saved})
