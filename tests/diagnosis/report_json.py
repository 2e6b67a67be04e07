"""What a report tells, as plain JSON: the diagnosis, the phases, and every sentence that concludes something."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from nsysdiag.record import to_json
from nsysdiag.report import Report

Json = dict[str, Any]

PARTS = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
BOTTLENECKS = frozenset(
    (
        "kernels",
        "parallelism",
        "communication",
        "copies",
        "input",
        "host",
        "sync",
        "launch",
        "memory",
        "startup",
        "other_process",
        "profiler",
        "unknown",
    )
)
BASES = frozenset({"steady", "phase", "window", "cold", "none"})
WORKING = 0.05
"""A device with less of the busiest one's work is touched only, and is no part of the job's account."""
SECOND = 0.1
"""The smallest part that is named beside the leading one."""
_NAMES = frozenset({"nvtx", "call", "rows", "name", "id", "devices", "device", "key", "signature", "cause"})
_CONCLUDING = ("verdict", "notes", "triage", "utilization")


def as_json(report: Report) -> Json:
    """The report as it is saved."""
    plain: Json = json.loads(to_json(report))
    return plain


def diagnosis_of(report: Json) -> Json:
    """The diagnosis; a report without one is a failure, never a reason to skip."""
    assert "diagnosis" in report, "the report holds no diagnosis"
    found: Json = report["diagnosis"]
    return found


def phases_of(report: Json) -> list[Json]:
    """The phases of the job, in time."""
    assert "phases" in report, "the report holds no phases"
    found: list[Json] = report["phases"]
    return found


def judged_phases(report: Json) -> list[Json]:
    """The phase that the headline is about; where it is about none in particular, all that are judged, or else all."""
    phases, index = phases_of(report), diagnosis_of(report)["phase"]
    if index is not None:
        return [phases[index]]
    return [phase for phase in phases if phase["judged"]] or phases


def devices_of(phases: list[Json]) -> dict[str, Json]:
    """What each device did over some phases: four parts, time outside, account and ledger, summed."""
    sums: dict[str, Json] = {}
    for phase in phases:
        for device in phase["devices"]:
            into = sums.setdefault(device["key"], {"account": Counter(), "ledger": Counter(), "total": Counter()})
            into["account"].update(device["account"])
            into["ledger"].update(device["ledger"])
            into["total"].update({name: device[name] for name in (*PARTS, "outside_ns")})
    return sums


def working(devices: dict[str, Json]) -> dict[str, Json]:
    """The devices that do real work, in the time looked at."""
    work = {key: sum(device["total"][name] for name in PARTS[:3]) for key, device in devices.items()}
    most = max(work.values(), default=0)
    return {key: device for key, device in devices.items() if work[key] >= WORKING * most}


def account_of(phases: list[Json]) -> Counter[str]:
    """The job's account of some phases: the sum over the devices that do real work."""
    total: Counter[str] = Counter()
    for device in working(devices_of(phases)).values():
        total.update(device["account"])
    return total


def ranked(account: Counter[str]) -> list[tuple[str, float]]:
    """The bottlenecks by their share of the account, the largest first. Kernels and parallelism are one, named by the
    larger; the profiler's own time is none, but a part of the total."""
    total = sum(account.values())
    merged = Counter(account)
    gpu = {name: merged.pop(name, 0) for name in ("kernels", "parallelism")}
    merged[max(gpu, key=lambda name: gpu[name])] = sum(gpu.values())
    merged.pop("profiler", None)
    return [(name, ns / total) for name, ns in merged.most_common() if ns > 0] if total else []


def shares_of(device: Json) -> dict[str, float]:
    """The four parts of a device as shares of the time in which they are."""
    whole = sum(device["total"][name] for name in PARTS)
    return {name: device["total"][name] / whole for name in PARTS} if whole else {}


def sentences(report: Json) -> list[str]:
    """Every sentence that concludes: headline, phases, findings, verdicts, notes, triage, alerts, the host's advice."""
    places: list[object] = [report.get(name) for name in ("diagnosis", "phases", "findings", "host", "ranks")]
    places += [device.get(name) for device in report["devices"] for name in _CONCLUDING]
    return [text for place in places for text in _texts(place)]


def _texts(place: object) -> Iterator[str]:
    if isinstance(place, str) and " " in place:
        yield place
    elif isinstance(place, list):
        for each in place:
            yield from _texts(each)
    elif isinstance(place, dict):
        for name, each in place.items():
            if name not in _NAMES:
                yield from _texts(each)


def saved_share(finding: Json) -> float | None:
    """The share of the judged step or window that a finding saves; None where it predicts nothing."""
    saves = finding["saves"]
    return saves["ns"] / saves["of_ns"] if saves and saves["of_ns"] else None
