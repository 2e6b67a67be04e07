"""Real captures of a small server of a language model, with one thing wrong in each, and fixed.

The host is real under the real nsys: scheduler, tables, texts and the process that makes them. The device is the one
that the program reckoned with (see `tests/grafting.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import compare
from tests.test_real_hosts import grafted

if TYPE_CHECKING:
    from nsysdiag.report import Report
    from tests.shared import Shared

pytestmark = [pytest.mark.fixtures, pytest.mark.slow]

FIXED = "ahead"
CAUSES = {
    "detokenizing": {"blocking_copy", "host_compute"},
    "eager": {"host_compute", "launch_call"},
    "synchronizing": {"blocking_copy"},
}
"""Of each broken server the causes that its first two findings are among: texts are made behind a read-back, kernels
launched one by one by the interpreter, and each step waits for its own tokens."""
LESS = {"detokenizing": "host code", "eager": "launch overhead", "synchronizing": "synchronization"}
"""What compare says that the fixed server has less of."""
LEAST_SAVED = {"detokenizing": 0.4, "eager": 0.1, "synchronizing": 0.1}


def report_of(shared: Shared, name: str) -> Report:
    capture = f"real_host_serve_{name}"
    grafted(shared, capture)
    return shared.report(grafted(shared, capture))


@pytest.mark.parametrize("name", CAUSES)
class TestBroken:
    def test_the_first_findings_name_the_cause(self, shared: Shared, name: str) -> None:
        found = report_of(shared, name).findings
        first = found[0]
        assert first.cause in CAUSES[name]
        assert {each.cause for each in found[:2]} & CAUSES[name] == CAUSES[name]
        assert first.saves is not None
        assert LEAST_SAVED[name] <= first.saves.ns / first.saves.of_ns

    def test_the_fix_brings_about_what_it_promised(self, shared: Shared, name: str) -> None:
        broken, fixed = report_of(shared, name), report_of(shared, FIXED)
        before, after = (each.devices[0].iterations for each in (broken, fixed))
        assert before is not None
        assert after is not None
        brought = 1 - after.p50_ns / before.p50_ns
        saves = broken.findings[0].saves
        assert saves is not None
        assert brought == pytest.approx(saves.ns / saves.of_ns, abs=0.15)

    def test_compare_says_so(self, shared: Shared, name: str) -> None:
        found = compare([report_of(shared, name)], [report_of(shared, FIXED)])
        assert "faster" in found.headline
        assert f"{LESS[name]} -" in found.headline.lower()

    def test_its_steps_decode_and_prefill(self, shared: Shared, name: str) -> None:
        iterations = report_of(shared, name).devices[0].iterations
        assert iterations is not None
        assert "decode" in {each.phase for each in iterations.serving}
        assert {each.shown_by for each in iterations.serving} <= {"attention", ""}


def test_the_fixed_server_keeps_its_gpu_busy(shared: Shared) -> None:
    report = report_of(shared, FIXED)
    assert report.diagnosis is not None
    assert report.diagnosis.bottleneck == "kernels"
    (phase,) = [each for each in report.phases if each.judged and each.steps and each.steps.count > 20]
    (device,) = phase.devices
    assert device.compute_ns > 0.85 * (phase.end_ns - phase.start_ns)
