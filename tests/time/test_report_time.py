"""`Report.time`: its columns, and that the numbers of a report are sums of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.messages import UsageError
from tests.levels import quick
from tests.shared import Shared
from tests.simulator.scenarios import SCENARIOS
from tests.test_real_traces import every_trace
from tests.time.adds_up import assert_adds_up, by

pytestmark = pytest.mark.usefixtures("analyzed_once")


@pytest.mark.sampled(quick=21, normal=11)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_simulated_programs_add_up(name: str, shared: Shared) -> None:
    assert_adds_up(nsysdiag.analyze(shared.trace(name)))


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", quick(sorted(path.stem for path in (Path(__file__).parent.parent / "fixtures").glob("sim_*.gz")), 1)
)
def test_committed_traces_add_up(name: str, shared: Shared) -> None:
    assert_adds_up(nsysdiag.analyze(shared.fixture(name)))


@pytest.mark.real
@every_trace
def test_real_traces_add_up(trace: Path) -> None:
    assert_adds_up(nsysdiag.analyze(trace))


@pytest.mark.slow
def test_rows_say_what_and_where(shared: Shared) -> None:
    report = nsysdiag.analyze(shared.fixture("sim_starved_training.sqlite"))
    rows = report.time
    waited = rows[rows.judged & (rows.bottleneck == "input")]
    late = {each.key: each.late_ns for phase in report.phases if phase.judged for each in phase.devices}
    assert sum(late.values()) > 0
    charged = rows[rows.judged & (rows.state == "exposed_comm") & (rows.bottleneck != "communication")]
    assert by(charged, "device") == {key: ns for key, ns in late.items() if ns}
    waited = waited[waited.state == "idle"]
    assert (waited.groupby("device", observed=True).thread.nunique() == 1).all()
    assert waited.operation.notna().all()
    assert waited.step.notna().any()
    assert by(waited, "root_cause").keys() == {"data_loading"}
    assert "data_loading" not in by(waited, "cause"), "the launching thread itself only waits"


@pytest.mark.slow
def test_the_table_is_not_saved(tmp_path: Path, shared: Shared) -> None:
    report = nsysdiag.analyze(shared.fixture("sim_launch_bound.sqlite"))
    report.save(tmp_path / "saved.json")
    saved = nsysdiag.load(tmp_path / "saved.json")
    assert saved == report
    with pytest.raises(UsageError, match="not saved"):
        _ = saved.time


@pytest.mark.slow
def test_sums_of_each_scope_are_a_table_of_their_own(shared: Shared) -> None:
    report = nsysdiag.analyze(shared.fixture("sim_starved_training.sqlite"))
    tables, rows = nsysdiag.frames(report), report.time
    sums = tables["time_sums"]
    mine = sums[(sums.device == "gpu1") & (sums.scope == "judged")]
    judged = rows[rows.judged & (rows.device == "gpu1")]
    found = report.judged_of("gpu1")
    assert found is not None
    assert sum(found.account.values()) == judged.ns.sum()
    assert report.judged_of("gpu9") is None
    for column in ("state", "cause"):
        assert dict(mine[mine.column == column][["name", "ns"]].to_numpy()) == by(judged, column)
    assert mine[mine.column == "bottleneck"].ns.sum() == judged.ns.sum()
    assert {*sums.scope} == {"judged", *(f"phase {at}" for at in range(len(report.phases)))}
    assert {*tables["ledger"].scope} == {"window"}
    assert {*tables["findings"].scope} == {"judged"}
