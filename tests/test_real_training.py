"""Real captures of two ranks that train on batches which come too late, and the demo that is made of one of them.

The host is real, the devices and the collectives between them are those that the program reckoned with.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.functions import bundled_trace
from tests.grafting import NAME
from tests.test_real_hosts import CLOSE, FIXTURES, LONG_NS, OF_RANKS, SUFFIXES, grafted, idle_within
from tests.test_simulator import contents

if TYPE_CHECKING:
    from nsysdiag.phases.facts import PhaseDevice
    from nsysdiag.report import DeviceReport, Gap, Report
    from tests.shared import Shared

pytestmark = [pytest.mark.fixtures, pytest.mark.slow]

ROOT = Path(__file__).parent.parent
RIGHT, WHOLE = 0.95, 0.8
"""Of the long waits, the share of those that lead to the loader, and of those that lead on to what the worker did."""
IDLE_MORE_NS = 100_000_000


@dataclass(frozen=True)
class Rank:
    """A rank of a capture: what its processes logged, and the report of its device."""

    log: dict[str, Any]
    pid: int
    device: DeviceReport
    report: Report

    @property
    def judged(self) -> PhaseDevice:
        """What its device did in the steady phase."""
        (phase,) = (each for each in self.report.phases if each.judged)
        return next(each for each in phase.devices if each.key == self.device.key)

    def mine(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.log[kind] if each["pid"] == self.pid]

    @property
    def starved_ns(self) -> int:
        """How long it waited for batches while its device had nothing to do, by its own clock."""
        window = self.device.window
        inside = [(max(each["start"], window.start_ns), each["end"]) for each in self.mine("injected")]
        return idle_within(
            Intervals.of([(start, end) for start, end in inside if start < end]), self.mine("operations")
        )

    def long_waits(self) -> list[tuple[dict[str, Any], Gap]]:
        """The waits for batches that most of a gap went by with, and that gap."""
        long_ones = [wait for wait in self.mine("waits") if wait["end"] - wait["start"] >= LONG_NS]
        return [
            (wait, gap)
            for wait in long_ones
            if len(wait["wakers"]) == 2
            for gap in self.device.gaps
            if gap.start_ns < wait["end"] and gap.end_ns > wait["start"]
            if min(gap.end_ns, wait["end"]) - max(gap.start_ns, wait["start"]) > 0.8 * (wait["end"] - wait["start"])
        ]


@pytest.fixture(scope="module", params=SUFFIXES)
def ranks(request: pytest.FixtureRequest, shared: Shared) -> list[Rank]:
    name = f"real_host_{OF_RANKS}{request.param}"
    log = json.loads((FIXTURES / f"{name}.json").read_text())
    report = shared.report(grafted(shared, name), Settings(timeline=False, gaps=0))
    pids = {each["device"]: each["pid"] for each in log["operations"]}
    return [Rank(log, pids[number], device, report) for number, device in enumerate(report.devices)]


@pytest.mark.sampled(normal=2)
def test_two_ranks_with_a_device_each(ranks: list[Rank]) -> None:
    assert [rank.device.key for rank in ranks] == ["gpu0", "gpu1"]
    assert [{each.pid for each in rank.device.ids} for rank in ranks] == [{rank.pid} for rank in ranks]


def test_one_waits_for_batches_and_the_other_in_the_collectives(ranks: list[Rank]) -> None:
    starved, other = sorted(ranks, key=lambda rank: rank.device.root_ledger["data_loading"], reverse=True)
    assert starved.device.verdict.id == "input-bound"
    assert other.report.diagnosis.bottleneck == "input"
    assert starved.device.idle_ns > other.device.idle_ns + IDLE_MORE_NS
    assert other.device.exposed_comm_ns > starved.device.exposed_comm_ns + IDLE_MORE_NS


def test_waiting_in_the_collectives_counts_to_the_batches_that_the_late_one_waits_for(ranks: list[Rank]) -> None:
    """Kernels of the collectives run until the late one comes: no network is slow, and no cause of this rank's own."""
    other = max(ranks, key=lambda rank: rank.judged.exposed_comm_ns)
    judged = other.judged
    assert judged.account["input"] - judged.ledger["io_wait"] > 0.5 * judged.exposed_comm_ns
    assert judged.account.get("communication", 0) < 0.1 * judged.exposed_comm_ns
    (late,) = (each for each in other.report.findings if each.cause == "late_rank")
    assert other.device.key in late.devices
    assert late.lost_ns > 0.5 * judged.exposed_comm_ns


def test_the_time_without_batches_is_what_the_program_measured(ranks: list[Rank]) -> None:
    starved = max(ranks, key=lambda rank: rank.starved_ns)
    assert starved.starved_ns > IDLE_MORE_NS
    assert starved.device.root_ledger["data_loading"] == pytest.approx(starved.starved_ns, rel=CLOSE)


def test_waits_lead_to_the_own_loader_and_never_to_the_other_rank_s(ranks: list[Rank]) -> None:
    pairs = [pair for rank in ranks for pair in rank.long_waits()]
    assert len(pairs) > 20
    told = [(gap.root.hops if gap.root else [], wait["wakers"]) for wait, gap in pairs]
    for hops, wakers in told:
        for hop, waker in zip(hops, wakers, strict=False):
            assert (hop.thread.pid, hop.thread.tid) == (waker["pid"], waker["tid"])
    assert sum(len(hops) > 0 for hops, _ in told) >= RIGHT * len(told)
    assert sum(len(hops) == 2 for hops, _ in told) >= WHOLE * len(told)


class TestTheDemo:
    """What ships is made of the fixture, and says that its devices are none."""

    @pytest.mark.thorough
    def test_it_is_the_capture_with_its_devices_put_in(self, tmp_path: Path) -> None:
        subprocess.run([sys.executable, str(ROOT / "scripts" / "make_fixtures"), str(tmp_path)], check=True)
        for name, data in (("made", (tmp_path / "demo.sqlite.gz").read_bytes()), ("shipped", bundled_trace())):
            (tmp_path / f"{name}.sqlite").write_bytes(gzip.decompress(data))
        assert contents(tmp_path / "made.sqlite") == contents(tmp_path / "shipped.sqlite")

    def test_it_says_what_the_whole_capture_says(self, ranks: list[Rank], tmp_path: Path) -> None:
        demo = tmp_path / "demo.sqlite"
        demo.write_bytes(gzip.decompress(bundled_trace()))
        report = analyze(demo, Settings(timeline=False))
        if report.trace.nsys_version != ranks[0].log["nsys"]:
            pytest.skip("the demo is of the other nsys")
        assert [each.name for each in report.devices] == [NAME, NAME]
        for part, whole in zip(report.devices, ranks, strict=True):
            assert (part.window_ns, part.ledger) == (whole.device.window_ns, whole.device.ledger)
            assert part.verdict == whole.device.verdict
