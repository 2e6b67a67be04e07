"""A report's JSON made by hand, in which everything holds, for tests to break one thing in."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.diagnosis.report_json import PARTS, Json

MS = 1_000_000


def device_phase(
    key: str,
    compute: int,
    comm: int,
    copy: int,
    ledger: dict[str, int],
    account: dict[str, int],
    *,
    outside: int = 0,
    base: str = "window",
) -> Json:
    """One device in one phase, in ms."""
    return {
        "key": key,
        "compute_ns": compute * MS,
        "exposed_comm_ns": comm * MS,
        "exposed_copy_ns": copy * MS,
        "idle_ns": sum(ledger.values()) * MS,
        "outside_ns": outside * MS,
        "ledger": {name: ns * MS for name, ns in ledger.items()},
        "account": {name: ns * MS for name, ns in account.items()},
        "account_base": base,
    }


def phase(name: str, start: int, end: int, devices: list[Json], bottleneck: str, share: float, **other: Any) -> Json:
    """A phase from `start` to `end` ms."""
    plain = {"judged": False, "steps": None, "sentence": f"The phase {name} lasts {end - start} ms."}
    found: Json = {
        "name": name,
        "start_ns": start * MS,
        "end_ns": end * MS,
        "devices": devices,
        "bottleneck": bottleneck,
        "share": share,
    }
    return found | plain | other


def finding(name: str, cause: str, bottleneck: str, saves: int | None, of: int, **other: Any) -> Json:
    """A finding that saves `saves` of `of` ms in the window."""
    share = (saves or 0) / of
    severity = next(
        (word for word, least in (("high", 0.2), ("medium", 0.05), ("low", 0.01)) if share >= least), "info"
    )
    plain: Json = {
        "id": name,
        "cause": cause,
        "bottleneck": bottleneck,
        "device": "gpu0",
        "devices": ["gpu0", "gpu1"],
        "severity": severity,
        "title": f"Time goes to {cause}",
        "lost_ns": (saves or 0) * MS,
        "lost_share": share,
        "ceiling_ns": (saves or 0) * MS,
        "confidence": 1.0,
        "nvtx": [],
        "evidence": ["The thread reads files."],
        "advice": ["Read ahead in another thread."],
        "chain": [f"step {cause}"],
        "saves": saves
        if saves is None
        else {
            "ns": saves * MS,
            "low_ns": 0,
            "high_ns": saves * MS,
            "per": "window",
            "of_ns": of * MS,
            "method": "bound",
        },
    }
    return plain | other


def _device(key: str, verdict: str, phases: list[Json]) -> Json:
    mine = [each for part in phases for each in part["devices"] if each["key"] == key]
    ledger = sum((Counter(each["ledger"]) for each in mine), Counter())
    sums = {name: sum(each[name] for each in mine) for name in PARTS}
    told = {"id": verdict, "sentence": "Kernels take most of the time."}
    return {"key": key, **sums, "ledger": dict(ledger), "window_ns": sum(sums.values()), "verdict": told, "notes": []}


def steady_report() -> Json:
    """Two GPUs: a start of 100 ms, 20 steps of 20 ms in which kernels take half and input 40%, an end of 10 ms."""
    step = {"io_wait": 160, "host_compute": 20}
    account = {"kernels": 200, "communication": 10, "copies": 10, "input": 160, "host": 20}
    phases = [
        phase(
            "start-up",
            0,
            100,
            [
                device_phase(key, 10, 0, 0, {"module_load": 90}, {"kernels": 10, "startup": 90})
                for key in ("gpu0", "gpu1")
            ],
            "startup",
            0.9,
        ),
        phase(
            "steady",
            100,
            500,
            [device_phase(key, 200, 10, 10, step, account) for key in ("gpu0", "gpu1")],
            "kernels",
            0.5,
            judged=True,
            steps={"count": 20, "median_ns": 20 * MS, "source": "nvtx"},
        ),
        phase(
            "teardown",
            500,
            510,
            [device_phase(key, 0, 0, 10, {}, {"copies": 10}) for key in ("gpu0", "gpu1")],
            "copies",
            1.0,
        ),
    ]
    findings = [
        finding("f-input", "io_wait", "input", 160, 400),
        finding("f-unknown", "uncovered", "unknown", None, 400, severity="info", lost_share=0.2),
        finding("f-host", "host_compute", "host", 20, 400),
        finding("f-copies", "exposed_copy", "copies", 2, 400, title="Overlap the copies"),
        finding("f-rest", "launch_call", "launch", None, 400, severity="low", lost_share=0.02),
    ]
    return {
        "devices": [_device("gpu0", "gpu-bound", phases), _device("gpu1", "gpu-bound", phases)],
        "phases": phases,
        "findings": findings,
        "diagnosis": {
            "headline": "Kernels take 50%; waiting for input (40%) can be fixed first.",
            "bottleneck": "kernels",
            "share": 0.5,
            "basis": "steady",
            "phase": 1,
            "second": {"bottleneck": "input", "share": 0.4},
            "action": "Read ahead in another thread.",
            "saves": findings[0]["saves"],
            "unknown_share": 0.0,
            "frameworks": [],
            "findings": ["f-input", "f-host"],
            "gpus_present": 4,
            "gpus_used": 2,
        },
    }


def cold_report() -> Json:
    """One GPU that ran two kernels after a start of 90 ms before its window."""
    devices = [
        device_phase(
            "gpu0",
            1,
            0,
            0,
            {"module_load": 9},
            {"kernels": 1, "startup": 89, "unknown": 10},
            outside=90,
            base="start",
        )
    ]
    phases = [phase("start-up", 0, 100, devices, "startup", 0.89)]
    return {
        "devices": [_device("gpu0", "module_load-bound", phases)],
        "phases": phases,
        "findings": [],
        "diagnosis": {
            "headline": "The start takes 89%, 10% is not explained. The trace holds no steady state.",
            "bottleneck": "startup",
            "share": 0.89,
            "basis": "cold",
            "phase": None,
            "second": {"bottleneck": "unknown", "share": 0.1},
            "action": "Capture a longer run, after its start.",
            "saves": None,
            "unknown_share": 0.1,
            "frameworks": [],
            "findings": [],
            "gpus_present": 1,
            "gpus_used": 1,
        },
    }


def rows_only_report() -> Json:
    """A trace of host ranges without any row of a GPU."""
    return {
        "devices": [],
        "phases": [],
        "findings": [],
        "diagnosis": {
            "headline": "What the GPU did is unknown: no GPU activity was traced.",
            "bottleneck": "unknown",
            "share": 1.0,
            "basis": "none",
            "phase": None,
            "second": None,
            "action": "Record again with CUDA tracing on.",
            "saves": None,
            "unknown_share": 1.0,
            "frameworks": ["pytorch"],
            "findings": [],
            "gpus_present": 1,
            "gpus_used": 0,
        },
    }
