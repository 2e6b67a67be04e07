"""Comparisons of two sides made by hand, for what the outputs do with them.

```
us a unit of work   before   after
compute               600      605     same
exposed copies         50       10     better
sync                  400      100     better: 60 of it host code now, at the same place
host code               0       60     worse
launch latency          2        2     next to nothing
length              1,052      777
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from nsysdiag.comparison.facts import (
    COMPARISON_SCHEMA_VERSION,
    KIND,
    AccountChange,
    Change,
    CollectiveChange,
    Comparison,
    CopyChange,
    CountChange,
    DeviceComparison,
    FamilyChange,
    FindingChange,
    JobComparison,
    KernelChange,
    MetricChange,
    Move,
    PartChange,
    Renaming,
    SideTrace,
    SignatureChange,
    Speedup,
    Step,
    Strip,
    Unit,
    WorkChange,
)
from nsysdiag.comparison.job import reasons
from nsysdiag.report import CauseInfo, Tool
from tests.output.samples import HOSTILE
from tests.output.step_samples import aligned
from tests.output.timeline.samples import timeline

US = 1_000
CAUSES = (
    CauseInfo(id="sync", title="Synchronization", meaning="The thread waited for the GPU.", color="#2563eb"),
    CauseInfo(id="host_compute", title="Host code", meaning="The thread was on a CPU.", color="#16a34a"),
    CauseInfo(id="launch_latency", title="Launch latency", meaning="On its way to the GPU.", color="#f59e0b"),
)
SENTENCE = "The mean iteration takes 777 µs instead of 1.05 ms: -26.1%, 95% interval -27.1% to -25.2%."
HEADLINE = "Step time 1.05 ms → 777 µs (1.35× faster, 95% CI 1.34 to 1.37); synchronization -300 µs"
RENAMED = (
    "Part of the idle time only changed its cause: of 300 µs that Synchronization lost, 20.0% came back as Host code."
)


@dataclass(frozen=True, slots=True)
class Words:
    """What a trace may call things."""

    device: str = "NVIDIA H100"
    file: str = "train.sqlite"
    operation: str = "gemm"
    other: str = "memcpy HtoD"
    cause: str = "sync"
    note: str = "One capture per side: the interval does not include the variation between runs."


def change(before: int, after: int, verdict: str = "same", *, told: bool = True) -> Change:
    """A change in us with an interval of 10 µs around it, or none."""
    moved = (after - before) * US
    return Change(
        before_ns=before * US,
        after_ns=after * US,
        change_ns=moved,
        low_ns=moved - 10 * US if told else None,
        high_ns=moved + 10 * US if told else None,
        least_ns=21 * US,
        verdict=verdict if told else "unknown",
    )


def part(id: str, before: int, after: int, verdict: str = "same") -> PartChange:
    return PartChange(id=id, change=change(before, after, verdict))


def strip(end_ns: int, cause: str) -> Strip:
    made = timeline(1_000, end_ns)
    return Strip(start_ns=1_000, end_ns=end_ns, cause_ids=[cause, "host_compute"], level=made.levels[-1])


def _kernels(words: Words) -> list[KernelChange]:
    rows = [
        (words.operation, "both", 6.0, 6.0, change(500, 505)),
        ("softmax", "both", 1.0, 2.5, change(40, 100, "regressed")),
        (words.other, "gone", 1.0, 0.0, change(60, 0, "improved")),
        ("ncclDevKernel_AllReduce", "added", 0.0, 1.0, change(0, 30, told=False)),
    ]
    return [
        KernelChange(
            name=f"void {name}<float>(float*)",
            short_name=name,
            communication=name.startswith("nccl"),
            status=status,
            count_before=before,
            count_after=after,
            mean_before_ns=round(found.before_ns / before) if before else 0,
            mean_after_ns=round(found.after_ns / after) if after else 0,
            change=found,
        )
        for name, status, before, after, found in rows
    ]


def _signatures(words: Words) -> list[SignatureChange]:
    rows = [
        ("s-1", "recaused", words.cause, "host_compute", 400, 160, "improved"),
        ("s-2", "added", None, "launch_latency", 0, 40, "regressed"),
        ("s-3", "gone", words.cause, None, 30, 0, "unknown"),
        ("s-4", "both", "launch_latency", "launch_latency", 2, 2, "same"),
    ]
    return [
        SignatureChange(
            id=id,
            status=status,
            previous_op=words.operation,
            next_op=words.other,
            nvtx=["step #", words.operation],
            cause_before=before,
            cause_after=after,
            count_before=float(bool(ns_before)),
            count_after=float(bool(ns_after)),
            change=change(ns_before, ns_after, verdict, told=verdict != "unknown"),
        )
        for id, status, before, after, ns_before, ns_after, verdict in rows
    ]


def _findings(words: Words) -> list[FindingChange]:
    rows = [
        ("f-1", "Synchronization: waits for a stream", words.cause, "both", "high", "medium", 400, 100),
        ("f-2", words.operation, "host_compute", "added", None, "low", 0, 60),
        ("f-3", "Exposed copies", "exposed_copy", "gone", "low", None, 50, 0),
        ("f-4", "Waiting for input data", "io_wait", "not_compared", None, "low", 0, 30),
    ]
    return [
        FindingChange(
            id=id,
            title=title,
            cause=cause,
            status=status,
            severity_before=before,
            severity_after=after,
            before_ns=ns_before * US,
            after_ns=ns_after * US,
        )
        for id, title, cause, status, before, after, ns_before, ns_after in rows
    ]


def _moves(cause: str) -> list[Move]:
    rows: list[tuple[str | None, str | None, int, int]] = [
        ("compute", "compute", 600, 600),
        (cause, None, 240, 0),
        (cause, cause, 100, 100),
        (cause, "host_compute", 60, 50),
        ("exposed_copy", None, 40, 0),
        ("exposed_copy", "exposed_copy", 10, 10),
        (None, "compute", 5, 0),
        ("launch_latency", "launch_latency", 2, 2),
    ]
    return [Move(before=one, after=two, ns=ns * US, seen_ns=seen * US) for one, two, ns, seen in rows]


def device(words: Words = Words(), *, key: str = "gpu0") -> DeviceComparison:
    """A device with something in every list; half of what synchronization lost is really gone."""
    ledger = [
        part(words.cause, 400, 100, "improved"),
        part("host_compute", 0, 60, "regressed"),
        part("launch_latency", 2, 2, "same"),
        part("queue_full", 0, 0),
    ]
    parts = [part("compute", 600, 605), part("exposed_comm", 0, 0), part("exposed_copy", 50, 10, "improved")]
    steps = {words.cause: -300, "host_compute": 60, "exposed_copy": -40, "compute": 5}
    return DeviceComparison(
        key=key,
        name_before=words.device,
        name_after=words.device,
        unit=Unit(
            kind="iterations",
            name_before=words.operation,
            name_after=words.operation,
            count_before=29,
            count_after=30,
            scale=1.0,
        ),
        verdict="improved",
        sentence=SENTENCE if words.cause == "sync" else words.note,
        noise=0.004,
        length=change(1052, 777, "improved"),
        parts=[*parts, part("idle", 402, 162, "improved")],
        ledger=ledger,
        root_ledger=[part("host_compute", 402, 162, "improved")],
        waterfall=[Step(id=id, change_ns=ns * US) for id, ns in steps.items()],
        moves=_moves(words.cause),
        renaming=Renaming(
            lost_ns=300 * US,
            removed_ns=240 * US,
            renamed_ns=60 * US,
            verdict="partly",
            sentence=RENAMED if words.cause == "sync" else words.note,
        ),
        workload=[CountChange(id="kernel", before=18.0, after=18.2, changed=False)],
        kernels=_kernels(words),
        signatures=_signatures(words),
        copies=[
            CopyChange(
                operation=words.other,
                src="pinned",
                dst=words.device,
                count_before=1.0,
                count_after=0.5,
                bytes_before=1 << 20,
                bytes_after=1 << 19,
                before_ns=50 * US,
                after_ns=10 * US,
            )
        ],
        communication=[
            CollectiveChange(
                kind=words.other,
                count_before=0.0,
                count_after=1.0,
                before_ns=0,
                after_ns=30 * US,
                exposed_before_ns=0,
                exposed_after_ns=5 * US,
            )
        ],
        launch=[
            MetricChange(id="calls", title="Launching calls", unit="count", before=19.0, after=19.5),
            MetricChange(id="call_p50", title=words.other, unit="ns", before=5_000.0, after=4_000.0),
        ],
        utilization=[
            MetricChange(id="busy", title="Busy", unit="share", before=0.62, after=0.79),
            MetricChange(id="sm_active", title="SM activity", unit="share", before=None, after=0.5),
        ],
        findings=_findings(words),
        notes=[words.note] if words.cause != "sync" else [],
        families=[
            FamilyChange(
                family="elementwise",
                how="slower",
                names_before=1,
                names_after=1,
                name_before=words.operation,
                name_after=words.operation,
                count_before=6.0,
                count_after=6.0,
                before_ns=500 * US,
                after_ns=505 * US,
                change_ns=5 * US,
            )
        ],
        strip_before=strip(50_001_000, words.cause),
        strip_after=strip(40_001_000, words.cause),
        steps=aligned(
            (words.other, words.operation, f"relu_{words.operation}"),
            (words.cause, "host_compute"),
            "stream 7" if words.cause == "sync" else words.note,
            "" if words.cause == "sync" else words.note,
        ),
    )


def job(found: DeviceComparison, others: int = 0) -> JobComparison:
    """Of a job whose slowest device this is, one of several where there are `others`."""
    length = found.length
    account = {"kernels": (600, 605), "sync": (400, 100), "copies": (50, 10), "host": (2, 62)}
    rows = [
        AccountChange(bottleneck=name, before_ns=one * US, after_ns=two * US, change_ns=(two - one) * US)
        for name, (one, two) in account.items()
    ]
    return JobComparison(
        statistic="median",
        unit=found.unit,
        verdict=found.verdict,
        device_before=found.key,
        device_after=found.key,
        devices_differ=others > 0,
        step=length,
        mean=length,
        speedup=Speedup(factor=1.354, low=1.337, high=1.371),
        work=[
            WorkChange(id="kernels", before=18.0, after=18.0, differs=False),
            WorkChange(id="launches", before=19.0, after=19.5, differs=False),
            WorkChange(id="bytes", before=float(1 << 20), after=float(1 << 20), differs=False),
        ],
        account=rows,
        top=[],
        why=reasons(rows, [], found, length),
    )


def comparison(
    devices: Sequence[DeviceComparison] | None = None,
    words: Words = Words(),
    causes: Sequence[CauseInfo] = CAUSES,
) -> Comparison:
    """One capture a side."""
    found = [device(words)] if devices is None else list(devices)
    sides = [
        SideTrace(
            file=f"{side}-{words.file}",
            size_bytes=3_456_789,
            fingerprint=f"{side}b1946ac92492d2347c6235b4d26111",
            nsys_version="2025.1.1",
            window=["first to last launched operation"],
            warnings=[f"{words.file}: 3 events were dropped"] if side == "after" else [],
            given=f"{words.file}.json" if side == "after" else "",
        )
        for side in ("before", "after")
    ]
    return Comparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version="0.0.0"),
        before=sides[:1],
        after=sides[1:],
        verdict=found[0].verdict if found else "unknown",
        sentence=found[0].sentence if found else words.note,
        devices=found,
        not_compared=[],
        notes=[words.note],
        causes=list(causes),
        settings={},
        headline=HEADLINE if words.cause == "sync" else words.note,
        job=job(found[0], len(found) - 1) if found else None,
    )


def bare() -> Comparison:
    """A device of which nothing but its length is known, without an interval, and no timelines, as of an older
    version."""
    length = change(100, 120, told=False)
    empty = dict.fromkeys(
        ("ledger", "root_ledger", "waterfall", "moves", "workload", "kernels", "signatures", "copies", "communication")
    )
    nothing = {name: [] for name in (*empty, "launch", "utilization", "findings", "notes", "parts")}
    found = replace(
        device(),
        verdict="unknown",
        sentence="The mean iteration takes 120 µs, not 100 µs: the data do not show whether that is more than chance.",
        length=length,
        noise=0.0,
        renaming=Renaming(lost_ns=0, removed_ns=0, renamed_ns=0, verdict="none", sentence="No cause lost any time."),
        strip_before=None,
        strip_after=strip(40_001_000, "sync"),
        steps=None,
        no_steps="No single steps are compared, so none are drawn below each other.",
        **nothing,
    )
    return replace(comparison([found]), notes=[], headline="", job=None)


def mixed() -> Comparison:
    """Four devices: better, worse, the same, and one that does the work of two before."""
    worse = replace(device(key="gpu1"), verdict="regressed", length=change(700, 900, "regressed"))
    same = replace(device(key="gpu2"), verdict="same", length=change(700, 700))
    unit = Unit(kind="kernels", name_before="", name_after="", count_before=1, count_after=1, scale=2.0)
    several = [device(), worse, same, replace(device(key="gpu3"), unit=unit, name_after="NVIDIA H200")]
    made = comparison(several)
    assert made.job is not None
    several_job = replace(made.job, verdict="mixed")
    return replace(made, verdict="mixed", sentence="Better on gpu0, gpu3, worse on gpu1.", job=several_job)


def hostile() -> Comparison:
    """Every text that comes from a trace, or from a saved file, is out to do harm."""
    bad = "".join(HOSTILE)
    words = Words(device=bad, file=bad, operation=bad, other=bad, cause=bad, note=bad)
    made = device(words, key=bad)
    kernels = [replace(made.kernels[1], name=name, short_name=name, status=name) for name in HOSTILE]
    gaps = [
        replace(made.signatures[0], id=name, status=name, previous_op=name, next_op=name, nvtx=[name], cause_after=name)
        for name in HOSTILE
    ]
    ledger = [*made.ledger, *(part(name, 30, 40, name) for name in HOSTILE)]
    moves = [*made.moves, *(Move(before=name, after="compute", ns=US, seen_ns=0) for name in HOSTILE)]
    findings = [replace(made.findings[0], title=name, status=name, severity_after=name) for name in HOSTILE]
    worst = replace(
        made,
        verdict=bad,
        kernels=kernels,
        signatures=gaps,
        ledger=ledger,
        moves=moves,
        findings=findings,
        workload=[CountChange(id=bad, before=1.0, after=1.0, changed=False)],
        renaming=replace(made.renaming, verdict=bad),
    )
    causes = [CauseInfo(id=name, title=name, meaning=name, color=name) for name in (bad, *HOSTILE)]
    whole = comparison([worst], words, causes)
    assert whole.job is not None
    rows = [AccountChange(bottleneck=name, before_ns=US, after_ns=2 * US, change_ns=US) for name in HOSTILE]
    work = [WorkChange(id=name, before=1.0, after=2.0, differs=True) for name in HOSTILE]
    bad_job = replace(whole.job, statistic=bad, verdict=bad, device_after=bad, account=rows, work=work)
    return replace(whole, verdict=bad, settings={"redacted": bad}, job=bad_job)


COMPARISONS: dict[str, Callable[[], Comparison]] = {
    "one": comparison,
    "bare": bare,
    "mixed": mixed,
    "hostile": hostile,
}
