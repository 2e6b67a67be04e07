"""The state of each GPU of a trace, read off real analyses of small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.batch.results import lines_of
from nsysdiag.batch.task import check_budgets
from nsysdiag.ci.budgets import parse_budgets
from nsysdiag.ci.facts import BARELY_USED, IDLE, JUDGED, UNEXPLAINED, states, unused_gpus
from nsysdiag.config.settings import Settings
from nsysdiag.formats.batch.entries import entry_of, rows, summary_of
from nsysdiag.pipeline import analyze
from nsysdiag.report import Verdict
from tests.builder import TraceBuilder
from tests.output import samples

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.ci.facts import BatchEntry
    from nsysdiag.report import Report

MS = 1_000_000
OTHER = (777, 777)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four GPUs one works, one is touched once, and two do nothing."""
    builder = TraceBuilder(schema="3.24.8").cuda_device(0, 0).cuda_device(1, 1)
    for gpu in range(4):
        builder.gpu(gpu, name="NVIDIA H100")
    for at in range(20):
        builder.kernel(at * MS, at * MS + 900_000, name="gemm", launch=(at * MS - 20, at * MS - 10))
    builder.memset(5 * MS, 5 * MS + 2_000, device=1, launch=(5 * MS - 20, 5 * MS - 10))
    return builder.write(tmp_path_factory.mktemp("node") / "node.sqlite")


@pytest.fixture(scope="module")
def report(node: Path) -> Report:
    return analyze(node, Settings())


def entry(report: Report, *budgets: str) -> BatchEntry:
    judged = check_budgets(report, "node.sqlite", parse_budgets(budgets, "fail", "--fail-on"))
    return entry_of(report, "node.sqlite", "node", "analysed", "node.html", judged.results, judged.unjudged)


def test_a_gpu_that_is_only_touched_is_not_judged(report: Report) -> None:
    assert states(report) == {"gpu0": JUDGED, "gpu1": BARELY_USED}
    assert unused_gpus(report) == 2


def test_chosen_gpus_say_nothing_of_the_others(node: Path) -> None:
    assert unused_gpus(analyze(node, Settings(device="0"))) == 0


def test_verdicts() -> None:
    def one(**changes: object) -> str:
        device = samples.device(0, **changes)
        return states(replace(samples.one_device(), devices=[device], diagnosis=None, phases=[]))["gpu0"]

    assert one() == JUDGED
    assert one(verdict=Verdict(id="unresolved", sentence="")) == UNEXPLAINED
    assert one(verdict=Verdict(id="no-gpu-work", sentence="")) == IDLE
    assert one(window_ns=0, busy_ns=0) == IDLE


def test_a_row_for_each_gpu_and_one_for_those_without_work(report: Report) -> None:
    summary = summary_of([entry(report, "idle_share > 99%")])
    found = [(row.device.key if row.device else row.unused, row.mark.word) for row in rows(summary)]
    assert found == [("gpu1", "Hardly used"), ("gpu0", "Budgets kept"), (2, "Not used")]


def test_each_gpu_breaks_its_own_budgets(report: Report) -> None:
    """9% of the window of the first is idle, and nothing of the second's, which is its only operation."""
    made = entry(report, "idle_share > 5%")
    (result,) = made.budgets
    assert [(each.device, each.broken) for each in result.devices] == [("gpu0", True), ("gpu1", False)]
    assert {row.device.key: row.mark.word for row in rows(summary_of([made])) if row.device} == {
        "gpu0": "Budget broken",
        "gpu1": "Hardly used",
    }
    assert [(line.device, line.broken, line.state) for line in lines_of(summary_of([made]), "run", 1)] == [
        ("gpu0", 1, JUDGED),
        ("gpu1", 0, BARELY_USED),
    ]
