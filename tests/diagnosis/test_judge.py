"""What leads an account, and the verdict on a device."""

from __future__ import annotations

import pytest
from msgspec import structs

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes.cause import Family
from nsysdiag.diagnosis.facts import Part
from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.judge import Leading, device_verdict, leading
from nsysdiag.phases.facts import PhaseDevice
from tests.output.samples import device

ALL = Focus(Intervals.of([(0, 100)]), [0], None)


class TestLeading:
    def test_the_largest_part_leads_and_the_next_is_named(self) -> None:
        assert leading({"sync": 60, "launch": 30, "input": 10}) == Leading("sync", 0.6, Part("launch", 0.3), 0.0)

    def test_kernels_and_parallelism_are_one_candidate_by_the_name_of_the_larger(self) -> None:
        """30 and 25 of 100 ns lead before 45 ns of synchronization, though neither would alone."""
        assert leading({"kernels": 30, "parallelism": 25, "sync": 45}) == Leading(
            "kernels", 0.55, Part("sync", 0.45), 0.0
        )
        assert leading({"kernels": 25, "parallelism": 30, "sync": 45}).bottleneck == "parallelism"

    def test_parallelism_is_not_the_next_of_kernels(self) -> None:
        assert leading({"kernels": 60, "parallelism": 40}) == Leading("kernels", 1.0, None, 0.0)

    def test_the_unknown_leads_too(self) -> None:
        assert leading({"unknown": 50, "kernels": 30, "sync": 20}) == Leading("unknown", 0.5, Part("kernels", 0.3), 0.5)

    @pytest.mark.parametrize(("sync", "second"), [(100, Part("sync", 0.1)), (99, None)])
    def test_the_next_one_counts_from_a_tenth(self, sync: int, second: Part | None) -> None:
        assert leading({"kernels": 1_000 - sync, "sync": sync}).second == second

    def test_equal_parts_by_name(self) -> None:
        assert leading({"sync": 5, "launch": 5}).bottleneck == "launch"

    @pytest.mark.parametrize("account", [{}, {"sync": 0}])
    def test_nothing_is_unknown(self, account: dict[str, int]) -> None:
        assert leading(account) == Leading("unknown", 0.0, None, 0.0)


VERDICTS: dict[Family, str] = {
    "kernels": "gpu-bound",
    "parallelism": "parallelism-bound",
    "communication": "comm-bound",
    "copies": "copy-bound",
    "input": "input-bound",
    "sync": "sync-bound",
    "launch": "launch-bound",
    "unknown": "unresolved",
}


def judged(account: dict[str, int]) -> list[PhaseDevice]:
    return [
        PhaseDevice(
            key="gpu0",
            compute_ns=account.get("kernels", 0),
            exposed_comm_ns=0,
            exposed_copy_ns=0,
            idle_ns=sum(account.values()) - account.get("kernels", 0),
            outside_ns=0,
            ledger={},
            account=account,
        )
    ]


class TestVerdict:
    @pytest.mark.parametrize("name", VERDICTS)
    def test_by_the_bottleneck(self, name: Family) -> None:
        assert device_verdict(device(), judged({name: 60, "startup": 40}), ALL).id == VERDICTS[name]

    @pytest.mark.parametrize(
        ("ledger", "verdict"),
        [
            ({"off_cpu": 30, "host_compute": 20, "sync": 90}, "contended"),
            ({"off_cpu": 20, "host_compute": 30, "sync": 90}, "host_compute-bound"),
        ],
    )
    def test_otherwise_by_the_cause_with_most_time(self, ledger: dict[str, int], verdict: str) -> None:
        """Causes of other bottlenecks don't count, however much time they have."""
        made = structs.replace(device(), root_ledger=ledger)
        assert device_verdict(made, judged({"host": 60, "kernels": 40}), ALL).id == verdict

    def test_the_sentence_holds_share_and_the_next(self) -> None:
        found = device_verdict(device(), judged({"sync": 60, "kernels": 40}), ALL)
        assert (
            found.sentence == "Synchronization keeps the GPU idle for 60.0% of the judged time; next: kernels, 40.0%."
        )

    def test_no_work(self) -> None:
        empty = structs.replace(device(), window_ns=0)
        assert device_verdict(empty, judged({}), ALL).id == "no-gpu-work"
        assert device_verdict(device(), judged({"sync": 9}), Focus(Intervals.empty(), [], None)).id == "no-gpu-work"
