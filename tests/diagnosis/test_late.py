"""Waiting for a late device, followed to why that one was late."""

from __future__ import annotations

import pytest

from nsysdiag import typed
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.behind import LateShare, followed, with_late
from nsysdiag.diagnosis.judge import late_sentence
from nsysdiag.findings.facts import Finding, Named, what_to_do
from nsysdiag.findings.rules import EXPOSED_COMM, LATE_RANK
from nsysdiag.findings.rules import KERNELS as KERNEL_TIME
from nsysdiag.phases.facts import PhaseDevice

LIMITS = FindingThresholds()
PEERS = "Compare gpu3 with its peers: its share of the data, where the data is read from, the CPU cores of its workers."
LATE = LateShare(share=0.9, reasons={"io_wait": 0.8, "compute": 0.2}, ranks={"gpu3": 90})


def finding(device: str, cause: str = EXPOSED_COMM.id, bottleneck: str = "communication", **other: object) -> Finding:
    plain: dict[str, object] = {
        "id": f"f-{cause}",
        "severity": "high",
        "title": "",
        "lost_ns": 100,
        "lost_share": 0.1,
        "ceiling_ns": 100,
        "confidence": 1.0,
        "nvtx": [],
        "evidence": [],
        "advice": ["overlap"],
        "devices": [device],
        "share": 0.1,
    }
    return Finding(device=device, cause=cause, bottleneck=bottleneck, **{**plain, **other})  # type: ignore[arg-type]


def waiting(ns: int) -> PhaseDevice:
    """A device that computes for 900 ns and communicates for so many."""
    return PhaseDevice(
        key="gpu0",
        compute_ns=900,
        exposed_comm_ns=ns,
        exposed_copy_ns=0,
        idle_ns=0,
        outside_ns=0,
        ledger={},
        account={"kernels": 900, "communication": ns},
        account_base="window",
    )


def test_a_wait_counts_to_what_made_the_other_late() -> None:
    device = waiting(100)
    (moved,) = followed([device], LATE)
    assert moved.account == {"kernels": 918, "communication": 10, "input": 72}
    assert (device.late_ns, moved.late_ns, moved.late_kept_ns) == (0, 90, 0)
    assert followed([device], None) == [device]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (0.9, "This includes 1.8% in which GPUs wait for kernels of late ones."),
        (0.918, ""),
        (0.7, ""),  # the rest is more than the waits
    ],
)
def test_the_headline_says_what_the_finding_on_kernels_leaves_out(own: float, said: str) -> None:
    (moved,) = followed([waiting(100)], LATE)
    kernels = finding("gpu0", KERNEL_TIME.id, "kernels", share=own)
    assert late_sentence([moved], {"kernels": 0.918, "communication": 0.01}, [kernels]) == said
    assert late_sentence([moved], {"kernels": 0.918}, []) == ""


def test_waiting_for_one_that_communicates_or_for_no_known_reason_stays_with_communication() -> None:
    """Of 90 ns of waiting 60 ns are an input wait of the other, and 20 ns its own communication."""
    late = LateShare(0.9, {"io_wait": 2 / 3, "exposed_comm": 2 / 9}, {"gpu3": 90})
    (moved,) = followed([waiting(100)], late)
    assert moved.account == {"kernels": 900, "communication": 40, "input": 60}
    assert (moved.late_ns, moved.late_kept_ns) == (60, 30)


def test_the_one_that_all_wait_for_is_named_with_its_cause_and_advice() -> None:
    named = [Named(text="read in next", share=0.3), Named(text="read", share=0.3), Named(text="in next", share=0.4)]
    root = finding(
        "gpu3", "io_wait", "input", call="read", nvtx=["next"], advice=["read ahead"], share=0.4, named=named
    )
    found = with_late([finding("gpu0"), finding("gpu1"), root], {"gpu0": LATE, "gpu1": LATE}, LIMITS)
    late = [each for each in found if each.cause == LATE_RANK.id]
    advice = [[typed.plain(text) for text in each.advice] for each in late]
    assert [(each.device, each.bottleneck, each.lost_ns, advice[at]) for at, each in enumerate(late)] == [
        ("gpu0", "input", 90, ["read ahead", PEERS]),
        ("gpu1", "input", 90, ["read ahead", PEERS]),
    ]
    assert {typed.plain(each.title) for each in late} == {"gpu3 is late, and others wait for it"}
    assert {typed.plain(each.summary) for each in late} == {"gpu3 is late (read in next)"}


def test_peers_come_first_where_another_cause_made_it_late() -> None:
    root = finding("gpu3", "data_loading", "input", advice=["more workers"], share=0.4)
    found = with_late([finding("gpu0"), finding("gpu1"), root], {"gpu0": LATE, "gpu1": LATE}, LIMITS)
    late = [each for each in found if each.cause == LATE_RANK.id]
    assert [[typed.plain(text) for text in each.advice] for each in late] == [[PEERS, "more workers"]] * 2


def test_what_to_compare_is_that_of_what_made_it_late() -> None:
    def first(reason: str) -> str:
        late = {key: LateShare(0.9, {reason: 1.0}, {"gpu3": 90}) for key in ("gpu0", "gpu1")}
        found = with_late([finding("gpu0"), finding("gpu1")], late, LIMITS)
        return next(typed.plain(each.advice[0]) for each in found if each.cause == LATE_RANK.id)

    assert "NUMA node of its process, other load" in first("host_compute")
    assert "clocks, temperature" in first("compute")
    assert "PCIe generation" in first("exposed_copy")


def test_both_the_comparison_and_what_helps_stand_first_on_the_screen() -> None:
    found = finding("gpu0", LATE_RANK.id, "input", advice=["Compare gpu3.", "Read ahead.", "Read less."])
    assert what_to_do(found) == "Compare gpu3. Read ahead."


def test_what_is_no_waiting_stays_communication() -> None:
    (rest,) = (
        each
        for each in with_late([finding("gpu0", share=0.5, lost_ns=1_000, ceiling_ns=700)], {"gpu0": LATE}, LIMITS)
        if each.cause == EXPOSED_COMM.id
    )
    assert (rest.lost_ns, rest.ceiling_ns, round(rest.share, 6)) == (100, 100, 0.05)


def test_devices_that_wait_for_each_other_name_nobody() -> None:
    mutual = {
        "gpu0": LateShare(0.9, {"io_wait": 1.0}, {"gpu1": 90}),
        "gpu1": LateShare(0.9, {"host_compute": 1.0}, {"gpu0": 90}),
    }
    found = with_late([finding("gpu0"), finding("gpu1")], mutual, LIMITS)
    late = [each for each in found if each.cause == LATE_RANK.id]
    assert {(each.id, each.title, each.bottleneck, each.summary) for each in late} == {
        ("f-late_rank", "GPUs wait for each other", "communication", "")
    }


def test_devices_that_are_late_in_turns_name_nobody() -> None:
    """Each waits first for another one: three for gpu1, by a little."""
    waits = [(0, 1, 40, 2), (1, 2, 40, 3), (2, 1, 40, 3), (3, 1, 40, 2)]
    late = {
        f"gpu{own}": LateShare(0.9, {"io_wait": 1.0}, {f"gpu{most}": ns, f"gpu{other}": 35})
        for own, most, ns, other in waits
    }
    found = with_late([finding(key) for key in late], late, LIMITS)
    assert {each.title for each in found if each.cause == LATE_RANK.id} == {"GPUs wait for each other"}
    late["gpu1"] = LateShare(0.9, {"io_wait": 1.0}, {"gpu2": 1})
    found = with_late([finding(key) for key in late], late, LIMITS)
    assert {each.title for each in found if each.cause == LATE_RANK.id} == {
        typed.rank("gpu1") + " is late, and others wait for it"
    }


def test_where_no_call_is_known_the_summary_says_where() -> None:
    root = finding("gpu3", "data_loading", "input", nvtx=["next"], share=0.4, named=[Named(text="in next", share=0.3)])
    found = with_late([finding("gpu0"), finding("gpu1"), root], {"gpu0": LATE, "gpu1": LATE}, LIMITS)
    late = [each for each in found if each.cause == LATE_RANK.id]
    assert {typed.plain(each.summary) for each in late} == {"gpu3 is late (in next)"}


def test_what_the_profiler_made_late_is_not_promised() -> None:
    profiled = LateShare(0.9, {"profiler_overhead": 0.5, "io_wait": 0.5}, {"gpu3": 90})
    found = with_late([finding("gpu0"), finding("gpu1")], {"gpu0": profiled, "gpu1": profiled}, LIMITS)
    assert {(each.lost_ns, each.ceiling_ns) for each in found if each.cause == LATE_RANK.id} == {(90, 45)}


def test_a_name_that_is_less_than_half_of_it_is_not_what_made_it_late() -> None:
    named = [Named(text="read in next", share=0.02), Named(text="in next", share=0.03)]
    root = finding("gpu3", "io_wait", "input", call="read", nvtx=["next"], share=0.4, named=named)
    found = with_late([finding("gpu0"), finding("gpu1"), root], {"gpu0": LATE, "gpu1": LATE}, LIMITS)
    assert {typed.plain(each.summary) for each in found if each.cause == LATE_RANK.id} == {"gpu3 is late"}


@pytest.mark.parametrize(("reason", "advised"), [("compute", "the same work"), ("uncovered", "hosts launch")])
def test_even_work_is_advised_where_compute_makes_them_late(reason: str, advised: str) -> None:
    late = {
        key: LateShare(share=0.9, reasons={reason: 0.9}, ranks={other: 90})
        for key, other in (("gpu0", "gpu1"), ("gpu1", "gpu0"))
    }
    found = with_late([finding("gpu0"), finding("gpu1")], late, LIMITS)
    assert all(advised in each.advice[0] for each in found if each.cause == LATE_RANK.id)
