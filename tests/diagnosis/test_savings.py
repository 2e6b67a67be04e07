"""Findings of the job: merged over its devices, what they save, their order and severity."""

from __future__ import annotations

import pytest
from msgspec import structs

from nsysdiag import typed
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.facts import Predicted, Saves
from nsysdiag.diagnosis.one_problem import ABOUT, TAKE_TURNS, TOO_SHORT, Judged, limited
from nsysdiag.diagnosis.savings import job_findings, saved_share, sure_share
from nsysdiag.findings.facts import Finding, Named
from nsysdiag.phases.facts import PhaseSteps

LIMITS = FindingThresholds()
JUDGED = 1_000
HIDES = "kernels can hide only {:.1f}%"
STEPS = 4


def finding(
    name: str = "f-sync",
    *,
    device: str = "gpu0",
    lost: int = 0,
    ceiling: int = 0,
    share: float = 0.0,
    bottleneck: str = "sync",
    gaps: int = 1,
    cause: str = "sync",
    summary: str = "",
) -> Finding:
    return Finding(
        id=name,
        cause=cause,
        device=device,
        severity="?",
        title="",
        lost_ns=lost,
        lost_share=lost / JUDGED,
        ceiling_ns=ceiling,
        confidence=1.0,
        nvtx=[],
        evidence=[],
        advice=[],
        gaps=gaps,
        devices=[device],
        bottleneck=bottleneck,
        share=share,
        summary=summary,
    )


def of_job(
    *found: Finding, judged: dict[str, int] | None = None, step: int | None = None, limits: FindingThresholds = LIMITS
) -> list[Finding]:
    times = {device: Judged(ns, ns) for device, ns in (judged or {"gpu0": JUDGED}).items()}
    steps = PhaseSteps(count=STEPS, median_ns=step, source="nvtx") if step else None
    return job_findings(list(found), times, steps, limits)


class TestWaitingForAnotherGpu:
    def test_kernels_have_to_run_somewhere(self) -> None:
        """One of two GPUs waits 90% of the time for the other: divided evenly, a step is 45% shorter."""
        judged = {"gpu0": JUDGED, "gpu1": JUDGED}
        (found,) = of_job(waiting("gpu0", 900, for_="gpu1"), judged=judged, step=1_000)
        assert found.saves == Saves(ns=450, low_ns=0, high_ns=450, per="step", of_ns=1_000, method="bound")
        assert found.ceiling_ns == 450

    def test_ending_one_of_two_waits_for_each_other_ends_both(self) -> None:
        judged = {"gpu0": JUDGED, "gpu1": JUDGED}
        found = of_job(waiting("gpu0", 400, for_="gpu1"), waiting("gpu1", 500, for_="gpu0"), judged=judged)
        (one,) = found
        assert (one.title, one.devices, saved_share(one)) == (TAKE_TURNS, ["gpu0", "gpu1"], 0.45)

    def test_waits_for_a_third_one_stay_apart(self) -> None:
        judged = {"gpu0": JUDGED, "gpu1": JUDGED, "gpu2": JUDGED}
        found = of_job(waiting("gpu0", 400, for_="gpu1"), waiting("gpu1", 500, for_="gpu2"), judged=judged)
        assert [each.devices for each in found] == [["gpu1"], ["gpu0"]]

    def test_what_is_no_kernel_may_be_saved_whole(self) -> None:
        (found,) = of_job(waiting("gpu0", 900, for_="gpu1", bottleneck="copies"), judged={"gpu0": 1_000, "gpu1": 1_000})
        assert saved_share(found) == 0.9


def waiting(device: str, ns: int, *, for_: str, bottleneck: str = "kernels") -> Finding:
    name = f"f-other_gpu-{bottleneck}-{for_}"
    share = ns / JUDGED
    found = finding(name, device=device, lost=ns, ceiling=ns, share=share, bottleneck=bottleneck, cause="other_gpu")
    return structs.replace(found, title=f"Waiting for {bottleneck} of {for_}")


def test_shares_in_a_summary_are_of_all_devices() -> None:
    """Of a kernel that takes 80% of one GPU and 10% of the other, where another one takes 70%."""

    def kernels(device: str, **shares: float) -> Finding:
        named = [Named(text=name, share=share, which="one of them") for name, share in shares.items()]
        whole = sum(shares.values())
        mine = finding("f-kernels", device=device, share=whole, bottleneck="kernels", cause="kernels")
        return structs.replace(mine, named=named)

    judged = {"gpu0": JUDGED, "gpu1": JUDGED}
    (found,) = of_job(kernels("gpu0", gemm=0.8, copy=0.1), kernels("gpu1", norm=0.7, gemm=0.1), judged=judged)
    assert found.share == 0.85
    assert found.summary == "gemm 45.0% (one of them), norm 35.0% (one of them), copy 5.0% (one of them)"


class TestWhatComesFirst:
    """A saving of which the replay cannot tell counts half, or at its lower bound."""

    @pytest.mark.parametrize(
        ("ns", "low", "sure"),
        [
            (40, 0, 0.2),  # may be nothing: half
            (40, 30, 0.3),  # but 30% in any case
        ],
    )
    def test_what_is_unsure(self, ns: int, low: int, sure: float) -> None:
        saves = Saves(ns=ns, low_ns=low, high_ns=80, per="step", of_ns=100, method="replay", cannot_tell=True)
        unsure = structs.replace(finding(), saves=saves)
        assert (sure_share(unsure), saved_share(unsure)) == (sure, 0.4)
        assert sure_share(structs.replace(unsure, saves=structs.replace(saves, cannot_tell=False))) == 0.4

    def test_why_iterations_are_slow_comes_before_that_they_are(self) -> None:
        """Slow iterations take 20% of the time, at most; what they wait for may save 31%, or nothing."""
        slow = finding("f-slow_iterations", ceiling=200, share=0.2, bottleneck="input", cause="slow_iterations")
        waits = finding("f-data_loading", ceiling=310, share=0.3, bottleneck="input", cause="data_loading")

        def predict(each: Finding, _among: object, _most: float) -> Predicted | str:
            unsure = Predicted("step", JUDGED, 310, 0, 600, cannot_tell=True)
            return unsure if each.cause == "data_loading" else "the fix changes kernels"

        found = job_findings([slow, waits], {"gpu0": Judged(JUDGED, JUDGED)}, None, LIMITS, predict)
        assert [each.cause for each in found] == ["data_loading", "slow_iterations"]

    def test_a_bound_is_less_sure_than_a_prediction(self) -> None:
        predicted = Saves(ns=40, low_ns=30, high_ns=50, per="step", of_ns=100, method="replay")
        bound = structs.replace(predicted, low_ns=0, method="bound")
        assert sure_share(structs.replace(finding(), saves=bound)) == 0.4 - ABOUT

    def test_a_late_gpu_is_less_sure_where_the_replay_cannot_tell(self) -> None:
        """The wait by which it is late saves as much for certain, and comes first then."""
        saves = Saves(ns=40, low_ns=30, high_ns=50, per="step", of_ns=100, method="replay")
        late = structs.replace(finding(cause="late_rank"), saves=saves)
        assert sure_share(late) == 0.4 + ABOUT
        assert sure_share(structs.replace(late, saves=structs.replace(saves, cannot_tell=True))) == 0.3

    def test_it_is_no_share_of_nothing(self) -> None:
        assert sure_share(finding()) == 0


class TestMerging:
    def test_one_id_on_two_devices_is_one_finding(self) -> None:
        """30 of 1,000 ns on one device and 90 of 3,000 on the other are 120 of 4,000."""
        (merged,) = of_job(
            finding(device="gpu1", lost=30, ceiling=40, share=0.04, gaps=2),
            finding(device="gpu0", lost=90, ceiling=90, share=0.03, gaps=5),
            judged={"gpu0": 3_000, "gpu1": 1_000},
        )
        assert (merged.device, merged.devices) == ("gpu0", ["gpu0", "gpu1"])
        assert (merged.lost_ns, merged.lost_share, merged.gaps) == (120, 0.03, 7)
        assert (merged.share, merged.ceiling_ns) == (round((0.04 * 1_000 + 0.03 * 3_000) / 4_000, 6), 90)

    def test_the_job_saves_what_the_device_that_saves_most_does(self) -> None:
        """4% on one device, 3% on the other: a step is as long as on the slowest, so 4% of the longest time."""
        (merged,) = of_job(
            finding(device="gpu0", ceiling=90),
            finding(device="gpu1", ceiling=40),
            judged={"gpu0": 3_000, "gpu1": 1_000},
        )
        assert merged.saves == Saves(ns=120, low_ns=0, high_ns=120, per="window", of_ns=3_000, method="bound")

    def test_other_ids_stay_apart(self) -> None:
        assert {each.id for each in of_job(finding("f-a", lost=1), finding("f-b", lost=1))} == {"f-a", "f-b"}

    def test_two_places_that_become_one_are_one_finding(self) -> None:
        """The places of the second device are too small a part of their time to be named, as that of the first."""
        judged = {"gpu0": JUDGED, "gpu1": JUDGED}
        second = (finding("f-sync-place", device="gpu1", lost=lost, ceiling=lost) for lost in (30, 20))
        (found,) = of_job(finding(lost=10, ceiling=10), *second, judged=judged)
        assert (found.devices, found.lost_ns, found.ceiling_ns) == (["gpu0", "gpu1"], 60, 50)

    @pytest.mark.parametrize("judged", [{"gpu0": 10}, {"gpu0": 10, "gpu1": 0}])
    def test_a_device_that_is_not_judged_has_none(self, judged: dict[str, int]) -> None:
        assert of_job(finding(device="gpu1", lost=5), judged=judged) == []


class TestSavings:
    def test_of_a_step(self) -> None:
        (found,) = of_job(finding(ceiling=250), step=48)
        assert found.saves == Saves(ns=12, low_ns=0, high_ns=12, per="step", of_ns=48, method="bound")
        assert saved_share(found) == 0.25

    def test_never_more_than_all(self) -> None:
        (found,) = of_job(finding(ceiling=3 * JUDGED), step=48)
        assert saved_share(found) == 1.0

    def test_none_where_nothing_tells(self) -> None:
        (found,) = of_job(finding(lost=500, ceiling=0, share=0.5))
        assert found.saves is None
        assert saved_share(found) == 0.0


class TestOrder:
    def test_savings_first_then_shares_then_ids(self) -> None:
        """What is unknown stands where it would if all of it could be saved."""
        found = of_job(
            finding("f-d", share=0.1),
            finding("f-c", share=0.1),
            finding("f-unknown", share=0.9, bottleneck="unknown"),
            finding("f-small", ceiling=20, share=0.02),
            finding("f-large", ceiling=30, share=0.03),
        )
        assert [each.id for each in found] == ["f-unknown", "f-large", "f-small", "f-c", "f-d"]

    def test_a_dozen_at_most_and_those_that_save_most(self) -> None:
        found = of_job(*(finding(f"f-{number:02}", ceiling=10 * number) for number in range(20)))
        assert [each.ceiling_ns for each in found] == [10 * number for number in range(19, 7, -1)]

    def test_how_many_is_a_setting(self) -> None:
        every = [finding(f"f-{number}", ceiling=number) for number in range(1, 5)]
        assert len(of_job(*every, limits=FindingThresholds(most=3))) == 3


class TestSeverity:
    @pytest.mark.parametrize(
        ("ceiling", "word"),
        [(200, "high"), (199, "medium"), (50, "medium"), (49, "low"), (10, "low"), (9, "info")],
    )
    def test_by_what_is_saved(self, ceiling: int, word: str) -> None:
        (found,) = of_job(finding(ceiling=ceiling, share=0.9))
        assert found.severity == word

    def test_by_the_share_where_nothing_tells(self) -> None:
        (found,) = of_job(finding(share=0.2))
        assert found.severity == "high"

    @pytest.mark.parametrize("bottleneck", ["unknown", "profiler"])
    def test_what_nobody_can_fix_is_information(self, bottleneck: str) -> None:
        (found,) = of_job(finding(share=0.9, bottleneck=bottleneck))
        assert found.severity == "info"


class TestAccountFromTheStart:
    def test_shares_are_of_all_that_is_judged(self) -> None:
        """Of a window of 1,000 ns and 3,000 ns before it, 500 ns are an eighth."""
        (found,) = job_findings(
            [finding(lost=500, ceiling=500, share=0.5)], {"gpu0": Judged(1_000, 4_000)}, None, LIMITS
        )
        assert (found.share, found.saves) == (
            0.125,
            Saves(ns=500, low_ns=0, high_ns=500, per="window", of_ns=4_000, method="bound"),
        )


class TestNotes:
    """Why a finding saves more than the share it takes, or far less."""

    def note(self, *found: Finding, compute: dict[str, int] | None = None) -> str:
        times = {key: Judged(JUDGED, JUDGED, (compute or {}).get(key, 0)) for key in ("gpu0", "gpu1")}
        return typed.plain(job_findings(list(found), times, None, LIMITS)[0].note)

    def test_what_a_wait_made_counts_to_the_wait(self) -> None:
        both = [finding("f-host", device=key, bottleneck="host", ceiling=300, share=0.2) for key in ("gpu0", "gpu1")]
        assert self.note(*both) == "saving includes 10.0% counted as synchronization before it"

    def test_the_share_is_of_all_gpus(self) -> None:
        assert self.note(finding(ceiling=300, share=0.3)) == "saving of gpu0, share of all GPUs"

    def test_nothing_where_both_are_the_same(self) -> None:
        assert self.note(*(finding(device=key, ceiling=300, share=0.3) for key in ("gpu0", "gpu1"))) == ""

    def test_the_job_is_no_shorter_than_the_kernels_of_a_gpu(self) -> None:
        times = {"gpu0": Judged(JUDGED, JUDGED, 50), "gpu1": Judged(JUDGED, JUDGED, 990)}
        (found,) = job_findings([finding(ceiling=900, share=0.9)], times, None, LIMITS)
        assert (saved_share(found), typed.plain(found.note)) == (0.01, "gpu1 computes for 99.0% of the time anyway")

    @pytest.mark.parametrize(
        ("cause", "saved", "share", "compute", "said"),
        [
            ("exposed_mpi", 404, 0.54, 404, True),
            ("exposed_copy", 404, 0.54, 410, True),
            ("exposed_comm", 404, 0.54, 800, False),  # something else limits it
            ("exposed_comm", 404, 0.405, 404, False),  # it saves what it takes
            ("sync", 404, 0.54, 404, False),  # it is not hidden behind kernels
        ],
    )
    def test_overlap_hides_no_more_than_there_are_kernels(
        self, cause: str, saved: int, share: float, compute: int, said: bool
    ) -> None:
        saves = Saves(ns=saved, low_ns=0, high_ns=saved, per="window", of_ns=JUDGED, method="replay")
        found = structs.replace(finding(cause=cause, share=share, bottleneck="copies"), saves=saves)
        assert limited(found, {"gpu0": Judged(JUDGED, JUDGED, compute)}).note == (
            HIDES.format(compute / 10) if said else ""
        )

    def test_of_steps_that_take_no_time_nothing_is_said(self) -> None:
        """Steps of 0 ns were divided by."""
        saves = Saves(ns=0, low_ns=0, high_ns=0, per="step", of_ns=0, method="bound")
        found = structs.replace(finding(cause="exposed_copy", share=0.5, bottleneck="copies"), saves=saves)
        assert limited(found, {"gpu0": Judged(JUDGED, JUDGED, 0)}).note == ""
        assert saved_share(found) == 0.0

    def test_bounds_above_the_time_of_kernels_have_no_figure_of_it(self) -> None:
        """A replay saves 404, at most 414, where kernels take 404: "only 40.4%" would contradict "up to 41.4%", and so
        would "no more"."""
        saves = Saves(ns=404, low_ns=0, high_ns=414, per="step", of_ns=JUDGED, method="replay", cannot_tell=True)
        found = structs.replace(finding(cause="exposed_mpi", share=0.54, bottleneck="communication"), saves=saves)
        assert limited(found, {"gpu0": Judged(JUDGED, JUDGED, 404)}).note == TOO_SHORT.format("40.4%")

    @pytest.mark.parametrize("bottleneck", ["kernels", "parallelism"])
    def test_but_a_fix_of_kernels_shortens_them(self, bottleneck: str) -> None:
        times = {"gpu0": Judged(JUDGED, JUDGED, 990)}
        (found,) = job_findings([finding(ceiling=400, bottleneck=bottleneck)], times, None, LIMITS)
        assert saved_share(found) == 0.4
