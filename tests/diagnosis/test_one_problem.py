"""A problem that two findings see is one finding, or the lesser says what it is a part of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.causes import CAUSES
from nsysdiag.causes.cause import Hint
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.one_problem import Judged
from nsysdiag.diagnosis.savings import job_findings, saved_share
from nsysdiag.findings.facts import Finding, Named
from nsysdiag.typed import say
from tests.diagnosis.test_late import finding

if TYPE_CHECKING:
    from tests.shared import Shared

LIMITS = FindingThresholds()
RANKS = ("gpu0", "gpu1", "gpu2")
KEEP = ["Keep the value on the device."]


def of_job(*found: Finding) -> list[Finding]:
    return job_findings(list(found), {key: Judged(1_000, 1_000) for key in RANKS}, None, LIMITS)


def reads(device: str, share: float) -> Finding:
    time = round(1_000 * share)
    return finding(device, "io_wait", "input", title="Reads", share=share, lost_ns=time, ceiling_ns=time)


def late(device: str, share: float) -> Finding:
    time = round(1_000 * share)
    return finding(
        device,
        "late_rank",
        "input",
        title="gpu2 is late",
        share=share,
        ceiling_ns=time,
        lost_ns=time,
        part_of="f-io_wait",
    )


def test_what_the_late_one_alone_does_is_one_with_what_others_wait_for_it() -> None:
    (one,) = of_job(late("gpu0", 0.42), late("gpu1", 0.42), reads("gpu2", 0.36))
    assert (one.id, one.title, one.devices) == ("f-late_rank", "gpu2 is late (Reads)", [*RANKS])
    assert (one.lost_ns, round(one.share, 6), saved_share(one), one.part_of) == (1_200, 0.4, 0.42, None)


def test_what_all_do_is_the_problem_of_which_waiting_is_a_part() -> None:
    first, second = of_job(late("gpu0", 0.1), *(reads(key, 0.3) for key in RANKS))
    assert (first.id, saved_share(first), first.part_of) == ("f-io_wait", 0.3, None)
    assert (second.id, second.saves, second.part_of, second.note) == ("f-late_rank", None, first.id, "part of: Reads")


def test_a_late_one_that_does_far_more_of_it_is_the_problem() -> None:
    first, second = of_job(late("gpu0", 0.4), late("gpu1", 0.4), reads("gpu1", 0.02), reads("gpu2", 0.4))
    assert (first.id, first.part_of, second.id, second.part_of) == ("f-late_rank", None, "f-io_wait", "f-late_rank")


def test_one_that_points_to_what_promises_nothing_stands_for_itself() -> None:
    unknown = finding("gpu2", "uncovered", "unknown", id="f-io_wait", ceiling_ns=0, share=0.9)
    assert [each.part_of for each in of_job(late("gpu0", 0.4), unknown)] == [None, None]
    assert [each.part_of for each in of_job(late("gpu0", 0.4))] == [None]


def read_back(cause: str, share: float, **other: object) -> Finding:
    time = round(1_000 * share)
    plain = {"nvtx": ["loss"], "advice": KEEP, "share": share, "lost_ns": time, "ceiling_ns": time, "title": cause}
    return finding("gpu0", cause, "sync", **{**plain, **other})


def test_a_synchronization_and_the_copy_beside_it_are_one_read_back() -> None:
    (one,) = of_job(read_back("sync", 0.1), read_back("blocking_copy", 0.2))
    assert (one.id, one.title, one.lost_ns, saved_share(one)) == ("f-blocking_copy", "blocking_copy (sync)", 300, 0.3)


def test_at_other_places_or_with_other_advice_they_are_two() -> None:
    copy = read_back("blocking_copy", 0.2)
    for other in ({"nvtx": ["metrics"]}, {"advice": ["Wait once."]}):
        assert len(of_job(copy, read_back("sync", 0.1, **other))) == 2
    nowhere = [read_back(cause, 0.1, nvtx=[]) for cause in ("sync", "blocking_copy")]
    assert len(of_job(*nowhere)) == 2


OPERATORS = next(kind for kind in CAUSES["host_compute"].variants if kind.hint == Hint.IN_OPERATORS).advice.plain


def issued(share: float, *path: str, advice: tuple[str, ...] = OPERATORS) -> Finding:
    time = round(1_000 * share)
    place = {"nvtx": list(path), "title": f"Host code, in {path[-1]}", "id": f"f-host_compute-{path[-1]}"}
    return finding(
        "gpu0",
        "host_compute",
        "host",
        share=share,
        lost_ns=time,
        ceiling_ns=min(2 * time, 800),
        advice=list(advice),
        kind="operators" if advice == OPERATORS else UNSET,
        **place,
    )


def test_operators_one_by_one_are_one_problem_at_all_places() -> None:
    """What makes them fewer is for the program. Together they save no more than the kernels leave."""
    places = [issued(0.3, "step", "moe"), issued(0.25, "step", "linear"), issued(0.2, "step", "linear", "addmm")]
    judged = {"gpu0": Judged(1_000, 1_000, compute_ns=200)}
    (one,) = job_findings(places, judged, None, LIMITS)
    assert (one.id, one.title) == ("f-host_compute-moe", "Host code: operators run one by one")
    assert (one.nvtx, round(one.share, 6), one.lost_ns, saved_share(one)) == (["step"], 0.75, 750, 0.8)
    assert [each.nvtx for each in one.joined] == [["step", "linear"], ["step", "linear", "addmm"]]


def test_operators_of_all_places_say_what_is_true_of_all() -> None:
    """The place with most time is the rest, which is in the step as all of it is: its share is not that of the step."""
    shares = {("step",): 0.3, ("step", "moe"): 0.25, ("step", "linear"): 0.15}
    places = [
        replace(
            issued(share, *path),
            gaps=10,
            chain=["the thread computes", "the queue is empty for a part of it", "idle before k", "capture a graph"],
            evidence=["by samples: 1 ns", "longest: 1 ns"],
            named=[
                Named(text="called in it", share=share / 2),
                Named(text=say("in {}", typed.nvtx(path[-1])), share=share),
            ],
        )
        for path, share in shares.items()
    ]
    (one,) = job_findings(places, {"gpu0": Judged(1_000, 1_000, compute_ns=200)}, None, LIMITS)
    assert [(typed.plain(each.text), each.share) for each in one.named] == [
        ("called in it", 0.35),
        ("in moe", 0.25),
        ("in linear", 0.15),
    ]
    assert one.chain[1] == "the queue is empty for 700 ns in 30 gaps at all places"
    assert one.evidence == ["at the place with most time, by samples: 1 ns", "longest: 1 ns"]


def test_the_rest_of_a_cause_keeps_its_title() -> None:
    call, rest = "Long launch calls: cudaLaunchKernel, in step", "Long launch calls, elsewhere"
    first = read_back("launch_call", 0.1, nvtx=["step"], title=call, id="f-launch_call-1a2b3c")
    other = read_back("launch_call", 0.2, nvtx=["step"], title=rest, id="f-launch_call-rest")
    for pair in ((first, other), (replace(first, share=0.3, lost_ns=300), other)):
        (one,) = of_job(*pair)
        assert one.title == rest


def test_host_code_of_two_places_is_two_problems() -> None:
    places = [
        issued(0.3, "step", "moe", advice=("Profile it.",)),
        issued(0.2, "step", "linear", advice=("Profile it.",)),
    ]
    assert [each.title for each in of_job(*places)] == ["Host code, in moe", "Host code, in linear"]


FUSE, PROFILE = "Fuse kernels.", "Profile the kernel."


def kernel_time(advice: list[str]) -> Finding:
    return finding("gpu0", "kernels", "kernels", title="Kernel time", share=0.8, ceiling_ns=0, advice=advice)


def test_advice_on_unfused_kernels_stands_there_alone() -> None:
    unfused = finding("gpu0", "unfused", "kernels", title="Unfused", share=0.3, ceiling_ns=200, advice=[FUSE])
    first, second = of_job(kernel_time([FUSE, PROFILE]), unfused)
    assert (first.cause, first.advice) == ("unfused", [FUSE])
    assert second.advice == ["Elementwise kernels: see “Unfused”.", PROFILE]


def test_without_such_a_finding_kernel_time_says_it() -> None:
    (found,) = of_job(kernel_time([FUSE, PROFILE]))
    assert found.advice == [FUSE, PROFILE]
    other = finding("gpu0", "sync", "sync", title="Sync", share=0.1, ceiling_ns=100, advice=[FUSE])
    assert [each.advice for each in of_job(kernel_time([FUSE, PROFILE]), other)] == [[FUSE], [FUSE, PROFILE]]


@pytest.mark.slow
def test_slow_iterations_are_a_part_of_what_they_have_more_of(shared: Shared) -> None:
    report = shared.report(shared.trace("collector_spikes"))
    (slow,) = (each for each in report.findings if each.cause == "slow_iterations")
    (collector,) = (each for each in report.findings if each.cause == "host_compute")
    assert (slow.saves, slow.part_of) == (None, collector.id)
    assert slow.note.startswith("part of: Host code: Python's garbage collector")


def test_kernels_that_take_longer_at_a_regular_distance_are_no_slow_iterations(shared: Shared) -> None:
    """Each kernel of a loop over streams looks like a step, and each third takes longer."""
    report = shared.report(shared.trace("overlapping_streams"))
    found = report.devices[0].iterations
    assert found is not None
    assert found.slow_count > 0
    assert "slow_iterations" not in {each.cause for each in report.findings}
