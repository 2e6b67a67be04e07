"""Batches and histories to draw: an ordinary one, a hostile one, none at all, nothing but failures, and a large one."""

from __future__ import annotations

from collections.abc import Callable

from nsysdiag.ci.facts import (
    BARELY_USED,
    BATCH_SCHEMA_VERSION,
    IDLE,
    JUDGED,
    KIND,
    UNEXPLAINED,
    BatchDevice,
    BatchEntry,
    BatchFinding,
    BatchSummary,
    BudgetResult,
    DeviceValue,
    HistoryLine,
    UnjudgedBudget,
)
from nsysdiag.report import Tool
from tests.output.samples import CAUSES, HOSTILE, MS

__all__ = ["BATCHES", "CAUSES", "HISTORIES"]

DAY = 86_400
PARTS = ("window_ns", "busy_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns")
FIRST = 1_750_000_000


def device(key: str = "gpu0", idle: int = 300, **changes: object) -> BatchDevice:
    """A second of window, `idle` ms of it idle."""
    values: dict[str, object] = {
        "key": key,
        "name": "NVIDIA H100 80GB HBM3",
        "verdict": "sync",
        "sentence": f"The GPU is idle {idle / 10:.1f}% of the time, most of it waiting for the host.",
        "window_ns": 1000 * MS,
        "busy_ns": (1000 - idle) * MS,
        "idle_ns": idle * MS,
        "compute_ns": (1000 - idle - 60) * MS,
        "exposed_comm_ns": 40 * MS,
        "exposed_copy_ns": 20 * MS,
        "coverage": 0.91,
        "iteration_ns": 12 * MS + 345_678,
        "causes": [("sync", idle * MS * 2 // 3), ("host_compute", idle * MS - idle * MS * 2 // 3)],
        "state": JUDGED,
    }
    return BatchDevice(**{**values, **changes})  # type: ignore[arg-type]


def finding(severity: str = "high", key: str = "gpu0", **changes: object) -> BatchFinding:
    values: dict[str, object] = {
        "id": f"f-sync-{severity}",
        "device": key,
        "cause": "sync",
        "severity": severity,
        "title": "The host waits for the GPU after every step",
        "lost_ns": 120 * MS,
        "lost_share": 0.12,
    }
    return BatchFinding(**{**values, **changes})  # type: ignore[arg-type]


def no_work(key: str = "gpu1") -> BatchDevice:
    """A GPU on which nothing ran."""
    facts = {"verdict": "no-gpu-work", "sentence": "No GPU work in this window.", "coverage": None, "causes": []}
    return device(key, 0, **facts, **dict.fromkeys(PARTS, 0), iteration_ns=None, state=IDLE)


def budget(
    expression: str = "idle_share > 25%", *, broken: bool = True, on: dict[str, bool] | None = None, **changes: object
) -> BudgetResult:
    """`on` says of each device that was judged whether it breaks the budget; the one that is named, unless said."""
    values: dict[str, object] = {
        "id": f"b-{expression}",
        "budget": expression,
        "source": "nsysdiag.toml: budgets[0]",
        "level": "fail",
        "device": "gpu0",
        "nvtx": "",
        "value": 0.3,
        "limit": 0.25,
        "unit": "share",
        "broken": broken,
        "sentence": f"Idle share is 30.0%, {'over' if broken else 'within'} the limit of 25.0% on gpu0.",
    }
    named = str({**values, **changes}["device"])
    judged = on if on is not None else {named: broken} if named else {}
    values["devices"] = [DeviceValue(device=key, value=0.3, broken=each) for key, each in judged.items()]
    return BudgetResult(**{**values, **changes})  # type: ignore[arg-type]


def unjudged(expression: str = "iterations.p50_ns > 10ms", **changes: object) -> UnjudgedBudget:
    values: dict[str, object] = {
        "id": f"b-{expression}",
        "budget": expression,
        "source": "--fail-on",
        "level": "fail",
        "device": "",
        "nvtx": "",
        "error": f"--fail-on: '{expression}' cannot be judged by x.sqlite: nothing repeats in it",
        "why": "nothing repeats in it",
        "hint": "a budget that cannot be judged is not kept",
    }
    return UnjudgedBudget(**{**values, **changes})  # type: ignore[arg-type]


def entry(name: str = "runs/train", **changes: object) -> BatchEntry:
    values: dict[str, object] = {
        "input": f"{name}.sqlite",
        "name": name,
        "status": "analysed",
        "fingerprint": "sha256-head:0123456789abcdef",
        "size_bytes": 12_345_678,
        "report": f"{name}.html",
        "devices": [device()],
        "findings": [finding(), finding("medium", id="f-host", cause="host_compute", title="Slow host code")],
        "budgets": [],
        "warnings": [],
    }
    return BatchEntry(**{**values, **changes})  # type: ignore[arg-type]


def failed(name: str = "runs/broken", **changes: object) -> BatchEntry:
    values: dict[str, object] = {
        "status": "failed",
        "report": "",
        "devices": [],
        "findings": [],
        "error": "the file is not an SQLite database",
        "hint": "export it: nsys export --type sqlite broken.nsys-rep",
        "exit_code": 3,
    }
    return entry(name, **{**values, **changes})


def summary(*entries: BatchEntry, version: str = "0.1.0") -> BatchSummary:
    """The batch of these, with its sums."""
    broken = [each for one in entries for each in one.budgets if each.broken]
    return BatchSummary(
        schema_version=BATCH_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version=version),
        entries=list(entries),
        failed=sum(each.status == "failed" for each in entries),
        broken=sum(each.level == "fail" for each in broken),
        warned=sum(each.level != "fail" for each in broken),
        unjudged=sum(len(each.unjudged) for each in entries),
        unjudged_failing=sum(budget.outcome == "fail" for each in entries for budget in each.unjudged),
    )


def good() -> BatchSummary:
    """One of each: kept, broken, warned, without budgets, without GPU work, failed, unchanged."""
    two = [device(idle=120), device("gpu1", 310)]
    both = {"gpu0": False, "gpu1": False}
    kept = [budget(broken=False, on=both), budget("iteration_ns > 20ms", broken=False, device="gpu1", nvtx="step")]
    warned = [budget("exposed_copy_ns > 10ms/iter", level="warn", sentence="Copies take 14.0 ms, over 10.0 ms.")]
    return summary(
        entry("runs/kept", devices=two, budgets=kept, findings=[finding("low", "gpu1")]),
        entry("runs/over", budgets=[*warned, budget(), budget("findings.high > 0", device="")]),
        entry("runs/warned", devices=[device(idle=80)], budgets=[*warned, budget(broken=False)]),
        entry("eval", devices=[device(idle=700, iteration_ns=None, coverage=None)], warnings=["3 events were dropped"]),
        entry("runs/cpu-only", devices=[], findings=[]),
        failed(),
        entry("runs/again", status="resumed", devices=[device(idle=45)], findings=[], budgets=[budget(broken=False)]),
    )


def states() -> BatchSummary:
    """A trace whose GPUs are each in another state, on a machine with more of them."""
    barely, unknown = device("gpu3", 990, state=BARELY_USED), device("gpu4", 100, state=UNEXPLAINED)
    devices = [device(idle=500), device("gpu1", 200), no_work("gpu2"), barely, unknown]
    share = budget(on={"gpu0": True, "gpu1": False, "gpu3": False, "gpu4": False})
    return summary(
        entry("runs/node", devices=devices, findings=[finding(devices=["gpu1"])], budgets=[share], unused_gpus=4)
    )


def hostile() -> BatchSummary:
    """Every text that comes from a trace or a file is out to do harm."""
    bad = "".join(HOSTILE)
    names = [*HOSTILE, bad, "%0A::error::x", "::set-output name=x::y", "##[error]x", "../../etc", "//evil.example/x"]
    return summary(
        *(_hostile_entry(name) for name in names),
        *(failed(name, error=name, hint=name, input=name) for name in names),
        version=bad,
    )


def _hostile_entry(name: str) -> BatchEntry:
    bad_device = device(name, name=name, verdict=name, sentence=name, causes=[(name, 5 * MS)])
    return entry(
        name,
        input=name,
        report=f"{name}.html" if name else "",
        devices=[bad_device],
        findings=[finding(severity, name, id=name, cause=name, title=name) for severity in ("high", "medium", name)],
        budgets=[
            budget(name, id=name, source=name, device=key, nvtx=name, level=level, sentence=name)
            for key in (name, "")
            for level in ("fail", "warn", name)
        ],
        unjudged=[
            unjudged(name, id=name, source=name, device=name, nvtx=name, level=name, error=name, why=name, hint=name)
        ],
        warnings=[name],
    )


def empty() -> BatchSummary:
    return summary()


def all_failed() -> BatchSummary:
    return summary(failed("a"), failed("b/c", hint="", error="the file is empty"))


def many() -> BatchSummary:
    """64 traces with eight GPUs each; budgets are broken in every fourth, every sixteenth failed."""
    return summary(*(_one_of_many(at) for at in range(64)))


def _one_of_many(at: int) -> BatchEntry:
    name = f"nightly/node{at // 8}/rank{at % 8}/train-llama-70b-tp8-pp4-{at:03}"
    if at % 16 == 5:
        return failed(name)
    devices = [device(f"gpu{key}", 40 + (at * 37 + key * 53) % 500) for key in range(8)]
    worst = f"gpu{at % 8}"
    broken = {f"gpu{key}": at % 4 == 0 and f"gpu{key}" == worst for key in range(8)}
    budgets = [
        budget(broken=at % 4 == 0, device=worst, on=broken),
        budget("coverage < 50%", broken=False, level="warn", on=dict.fromkeys(broken, False)),
    ]
    return entry(name, devices=devices, budgets=budgets, findings=[finding(key=f"gpu{at % 8}")])


def line(at: int, input: str, key: str, idle: int, **changes: object) -> HistoryLine:
    values: dict[str, object] = {
        "at": FIRST + at * DAY,
        "run": f"{0xA1B2C3 + 7919 * at:x}",
        "input": input,
        "device": key,
        "window_ns": 1000 * MS,
        "busy_ns": (1000 - idle) * MS,
        "idle_ns": idle * MS,
        "compute_ns": (940 - idle) * MS,
        "exposed_comm_ns": 40 * MS,
        "exposed_copy_ns": 20 * MS,
        "iteration_ns": 10 * MS + idle * 12_345,
        "causes": {"sync": idle * MS // 2, "host_compute": idle * MS - idle * MS // 2},
        "broken": int(idle > 300),
    }
    return HistoryLine(**{**values, **changes})  # type: ignore[arg-type]


def good_history() -> list[HistoryLine]:
    """Three traces: one of many runs, one of two without iterations, one of a single run that is no more."""
    wave = [line(at, "runs/over.sqlite", "gpu0", 250 + (at * 29) % 70 + 2 * at) for at in range(25)]
    pair = [line(at, "eval.sqlite", "gpu0", 600 + 100 * at, iteration_ns=None) for at in range(2)]
    gone = [line(3, "runs/gone.sqlite", "gpu0", 0, causes={}, run="")]
    return [*reversed(wave), *pair, *gone]


def hostile_history() -> list[HistoryLine]:
    return [
        line(at, name, name, 100 + at, run=name, causes={name: 50 * MS, "sync": 20 * MS})
        for name in HOSTILE
        for at in (0, 1)
    ]


def many_history() -> list[HistoryLine]:
    """500 runs of 512 devices would be a page of many MB: 40 are enough to be thinned."""
    found = [one for one in many().entries if one.devices]
    return [
        line(at, one.input, each.key, 40 + (at * 31 + index * 7) % 400)
        for index, one in enumerate(found)
        for each in one.devices
        for at in range(40)
    ]


BATCHES: dict[str, Callable[[], BatchSummary]] = {
    "good": good,
    "states": states,
    "hostile": hostile,
    "empty": empty,
    "all_failed": all_failed,
    "many": many,
}
HISTORIES: dict[str, Callable[[], list[HistoryLine]]] = {
    "good": good_history,
    "states": lambda: [line(0, "runs/node.sqlite", "gpu2", 0, **dict.fromkeys(PARTS, 0), state=IDLE)],
    "hostile": hostile_history,
    "empty": list,
    "all_failed": list,
    "many": many_history,
}
