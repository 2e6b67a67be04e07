"""The kinds of bottleneck: each at its threshold, and which of them comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysdiag import typed
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import TriageThresholds
from nsysdiag.diagnosis.bottleneck import triage
from nsysdiag.diagnosis.facts import Triage, TriageKind, Workload
from nsysdiag.diagnosis.inputs import Filling, Given
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.ledger import UNRESOLVED
from nsysdiag.report import KernelRow, Launch

WINDOW = 1_000_000
FULL = Filling(0.9, "measured")


def kernel(name: str, total: int, *, communication: bool = False) -> KernelRow:
    return KernelRow(
        name=name,
        short_name=name,
        count=1,
        total_ns=total,
        mean_ns=total,
        median_ns=total,
        min_ns=total,
        max_ns=total,
        communication=communication,
    )


def given(
    idle: dict[str, int],
    *,
    copy: int = 0,
    comm: int = 0,
    filling: Filling | None = FULL,
    kernels: tuple[KernelRow, ...] = (kernel("gemm", 100),),
    tensor: float | None = None,
    headroom: int | None = None,
    kind: str = "unclear",
    between: int = 0,
    between_launches: int = 0,
) -> Given:
    """A window of 1 ms: the idle time by root cause, copies and communication that nothing hides, the rest compute.
    `between` ns more of it are idle between bursts."""
    window = WINDOW + between
    compute = WINDOW - sum(idle.values()) - copy - comm
    split = WindowSplit(
        window_ns=window,
        compute_ns=compute,
        exposed_comm_ns=comm,
        exposed_copy_ns=copy,
        overlapped_comm_ns=7_000,
        kernel_ns=compute + comm,
        kernels=Intervals.empty(),
        busy=Intervals.empty(),
        parts=(Intervals.empty(), Intervals.empty(), Intervals.empty()),
    )
    return Given(
        workload=Workload(kind=kind, why="", judged_ns=WINDOW, between_ns=between),
        split=split,
        idle=idle,
        between_launches_ns=between_launches,
        launch=Launch(
            launched_ops=100,
            unlaunched_ops=0,
            found_device_idle=0,
            median_queue_delay_ns=None,
            median_interval_ns=12_000,
            median_kernel_ns=8_000,
            api=[],
            calls=100,
        ),
        kernels=list(kernels),
        filling=filling,
        tensor_active=tensor,
        headroom_bytes=headroom,
        limits=TriageThresholds(),
    )


def kind(found: Triage, name: str) -> TriageKind:
    return next(each for each in found.kinds if each.id == name)


CASES = {
    "nothing stands out": ("none", given({"stream_wait": 600_000})),
    "compute is half of it": ("kernels", given({"stream_wait": 500_000})),
    "launches a tenth": ("runtime", given({"launch_call": 100_000})),
    "launches just below": ("kernels", given({"launch_call": 99_999})),
    "loading code is runtime": ("runtime", given({"module_load": 60_000, "launch_latency": 40_000})),
    "half the chip is filled": ("runtime", given({"launch_call": 100_000}, filling=Filling(0.5, "estimated"))),
    "less than half": ("batch", given({"launch_call": 100_000}, filling=Filling(0.499, "estimated"))),
    "communication": ("communication", given({"launch_call": 100_000}, comm=150_000, filling=Filling(0.2, "x"))),
    "communication just below": ("batch", given({"launch_call": 100_000}, comm=149_999, filling=Filling(0.2, "x"))),
    "the host a tenth": ("feed", given({"host_compute": 60_000, "sync": 40_000}, comm=150_000)),
    "the host just below": ("communication", given({"host_compute": 99_999}, comm=150_000)),
    "input": ("feed", given({"data_loading": 100_000})),
    "copies feed too": ("feed", given({}, copy=100_000)),
    "no evidence may be the feed": ("unresolved", given({"uncovered": 60_000, "sync": 40_000})),
    "no evidence, and too little": ("kernels", given({"uncovered": 60_000, "sync": 39_999})),
    "host code between launches": ("runtime", given({"host_compute": 100_000}, between_launches=100_000)),
    "host code not between them": ("feed", given({"host_compute": 200_000}, between_launches=100_000)),
    "small kernels that take no time": ("runtime", given({"module_load": 900_001}, filling=Filling(0.01, "x"))),
    "small kernels that take some": ("batch", given({"module_load": 900_000}, filling=Filling(0.01, "x"))),
    "small, and nothing holds it up": ("sizing", given({"stream_wait": 99_999}, filling=Filling(0.1, "x"))),
    "small, and other streams hold it up": ("batch", given({"stream_wait": 100_000}, filling=Filling(0.1, "x"))),
    "small, at the threshold": ("batch", given({}, filling=Filling(0.1, "x"))),
    "small, but launches hold it up": ("batch", given({"launch_call": 100_000}, filling=Filling(0.05, "x"))),
    "rarely asked": ("sizing", given({}, kind="bursts", between=10 * WINDOW)),
    "rarely asked, and late then": ("feed", given({"io_wait": 100_000}, kind="bursts", between=10 * WINDOW)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_kind_is(case: str) -> None:
    expected, values = CASES[case]
    assert triage(values).id == expected


def test_all_kinds_are_given_in_the_order_of_repair() -> None:
    found = triage(given({"launch_call": 100_000}))
    assert [each.id for each in found.kinds] == ["feed", "communication", "batch", "runtime", "kernels", "sizing"]
    assert {each.id: each.holds for each in found.kinds} == {
        "feed": False,
        "communication": False,
        "batch": False,
        "runtime": True,
        "kernels": True,
        "sizing": False,
    }
    assert all(each.evidence for each in found.kinds)
    assert all(bool(each.advice) == bool(each.holds) for each in found.kinds)


def test_evidence_names_the_largest_part_first() -> None:
    found = kind(triage(given({"data_loading": 30_000, "host_compute": 20_000}, copy=300_000)), "feed")
    assert found.share == 0.35
    assert found.evidence == [
        "35.0% of the time (350 us): most of it copying with no kernel beside it.",
        "30.0% of the time (300 us): copying with no kernel beside it.",
        "3.0% of the time (30.0 us): waiting for input or output.",
        "2.0% of the time (20.0 us): the host being late.",
        "Root causes of this idle time: waiting for input data 60.0%, host code 40.0%.",
    ]
    assert [text.partition(":")[0] for text in found.advice] == ["Input", "Host", "Copies"]


def test_without_the_chip_the_batch_cannot_be_judged() -> None:
    found = kind(triage(given({}, filling=None)), "batch")
    assert found.holds is None
    assert found.evidence[1] == "The median kernel runs 8.00 us, shorter than 10.0 us."


def test_small_without_the_chip_is_told_by_compute_alone() -> None:
    """Kernels that filled the chip would use 9 % of it: they use at most that."""
    found = kind(triage(given({}, filling=None, kind="bursts", between=100_000_000 // 9 - WINDOW + 1)), "sizing")
    assert found.holds
    assert found.evidence == ["All kernels that compute would keep at most 9.0% of the chip at work over the window."]


@pytest.mark.parametrize(
    ("headroom", "said"),
    [(None, "--cuda-memory-usage=true"), (3 << 30, "3.00 GiB of the device's memory are free"), (0, "no room")],
)
def test_advice_on_batches_knows_the_memory(headroom: int | None, said: str) -> None:
    found = kind(triage(given({}, filling=Filling(0.3, "x"), headroom=headroom)), "batch")
    assert said in found.advice[0]


def test_requests_are_collected_into_batches() -> None:
    found = kind(triage(given({}, filling=Filling(0.3, "x"), kind="bursts")), "batch")
    assert found.advice[0].startswith("Collect requests into batches")


def test_single_precision_is_seen_by_name_and_by_counters() -> None:
    plain = (kernel("ampere_sgemm_128x64_tn", 300), kernel("softmax", 100))
    found = kind(triage(given({}, kernels=plain)), "kernels")
    assert "75.0% of it is in matrix products named for single precision without tensor cores." in found.evidence
    assert found.advice[0].startswith("Mixed precision")
    for name in ("ampere_bf16_s16816gemm_bf16", "cutlass_tensorop_s1688gemm_tf32", "nvjet_tst_192x192"):
        on_tensor = kind(triage(given({}, kernels=(kernel(name, 300),))), "kernels")
        assert not any(text.startswith("Mixed") for text in on_tensor.advice), name
    assert kind(triage(given({}, tensor=0.099)), "kernels").advice[0].startswith("Mixed precision")
    assert not kind(triage(given({}, tensor=0.1)), "kernels").advice[0].startswith("Mixed precision")


def test_communication_kernels_are_no_compute() -> None:
    rows = (kernel("nccl", 900, communication=True), kernel("gemm", 100))
    found = kind(triage(given({}, kernels=rows)), "kernels")
    assert "100.0% of the kernels' time is in gemm." in map(typed.plain, found.evidence)


def test_every_cause_is_of_one_kind_at_most() -> None:
    """What is left is the device's own doing, or the profiler's."""
    lost = {cause.id for cause in CAUSES.values() if cause.loss is not None}
    assert not lost & UNRESOLVED
    own = {"queue_full", "profiler_overhead", "stream_wait", "stream_barrier", "gpu_context_switch", "device_stall"}
    assert set(CAUSES) == lost | UNRESOLVED | own


def test_the_yardstick_is_said() -> None:
    by_steps = triage(given({"data_loading": 200_000}, kind="steps"))
    assert by_steps.sentence == (
        "Repair the feed path first (measured by its steps). 20.0% of the time (200 us): waiting for input or output."
    )
    unresolved = triage(given({"uncovered": 300_000}, kind="bursts"))
    assert unresolved.sentence == (
        "Whether work reaches the device in time, the trace cannot tell (measured inside its bursts). "
        "30.0% of the time (300 us): idle time that has no evidence."
    )


def test_what_else_the_device_waits_for_is_said() -> None:
    found = triage(given({"stream_wait": 600_000, "device_stall": 200_000}))
    assert found.sentence == (
        "No bottleneck stands out. The device is idle 80.0% of the time, 75.0% of that: waiting for another stream."
    )


def test_a_window_without_work_has_no_trouble() -> None:
    empty = replace(given({}), workload=Workload(kind="unclear", why="", judged_ns=0), kernels=[])
    empty = replace(empty, split=replace(empty.split, window_ns=0, compute_ns=0))
    assert triage(empty).id == "none"
