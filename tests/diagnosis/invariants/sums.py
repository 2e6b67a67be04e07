"""Invariants of sums: nothing is lost or counted twice between accounts, phases and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.diagnosis.invariants.registry import invariant
from tests.diagnosis.report_json import BOTTLENECKS, PARTS, Json, devices_of, diagnosis_of, phases_of


def _places(report: Json) -> Iterator[tuple[str, Json]]:
    for number, phase in enumerate(phases_of(report)):
        for device in phase["devices"]:
            yield f"phase {number}, {device['key']}", device


@invariant
def accounts_add_up(report: Json) -> Iterator[str]:
    """An account is the four parts, and the time outside where it begins at the first CUDA call."""
    for place, device in _places(report):
        expected = sum(device[name] for name in PARTS)
        expected += device["outside_ns"] if device["account_base"] == "start" else 0
        if (found := sum(device["account"].values())) != expected:
            yield f"{place}: the account is {found} ns, its parts {expected}"


@invariant
def accounts_hold_bottlenecks(report: Json) -> Iterator[str]:
    """Accounts name known bottlenecks, none below zero, and begin at the first CUDA call in start-ups, or where the
    chosen time begins."""
    cold = diagnosis_of(report)["basis"] == "cold" or bool({"start_ns", "nvtx"} & report.get("settings", {}).keys())
    starts = {f"phase {number}" for number, phase in enumerate(phases_of(report)) if phase["name"] == "start-up"}
    for place, device in _places(report):
        if unknown := set(device["account"]) - BOTTLENECKS:
            yield f"{place}: no bottlenecks: {sorted(unknown)}"
        if negative := [name for name, ns in device["account"].items() if ns < 0]:
            yield f"{place}: below zero: {negative}"
        if device["account_base"] not in {"window", "start"}:
            yield f"{place}: account of {device['account_base']!r}"
        if device["account_base"] == "start" and not cold and place.split(",")[0] not in starts:
            yield f"{place}: an account from the start, though it is none"


@invariant
def ledgers_add_up(report: Json) -> Iterator[str]:
    """The ledger of a phase is the phase's idle time."""
    for place, device in _places(report):
        if (found := sum(device["ledger"].values())) != device["idle_ns"]:
            yield f"{place}: the ledger is {found} ns of {device['idle_ns']} idle"


@invariant
def phases_add_up_to_the_devices(report: Json) -> Iterator[str]:
    """Over the phases the four parts and the ledgers are the device's."""
    sums = devices_of(phases_of(report))
    known = {device["key"] for device in report["devices"]}
    if strangers := sums.keys() - known:
        yield f"phases of no device: {sorted(strangers)}"
    for device in report["devices"]:
        mine = sums.get(device["key"], {"total": Counter(), "ledger": Counter()})
        for name in PARTS:
            if mine["total"][name] != device[name]:
                yield f"{device['key']}: {name} is {mine['total'][name]} over the phases, {device[name]} in all"
        if +mine["ledger"] != +Counter(device["ledger"]):
            yield f"{device['key']}: the ledgers of the phases are not the device's"


@invariant
def phases_touch(report: Json) -> Iterator[str]:
    """Each phase begins where the one before ends."""
    phases = phases_of(report)
    for number, phase in enumerate(phases):
        if phase["start_ns"] >= phase["end_ns"]:
            yield f"phase {number} is empty"
    for number, (one, after) in enumerate(pairwise(phases)):
        if one["end_ns"] != after["start_ns"]:
            yield f"phase {number} ends at {one['end_ns']}, the next begins at {after['start_ns']}"


_ORDER = ("start-up", "steady or pause", "teardown")


@invariant
def phases_are_named_in_order(report: Json) -> Iterator[str]:
    """A start-up or head comes first, a teardown or tail last, a pause between steady phases."""
    places = {"start-up": 0, "head": 0, "steady": 1, "pause": 1, "teardown": 2, "tail": 2}
    names = [phase["name"] for phase in phases_of(report)]
    if strangers := set(names) - places.keys():
        yield f"unknown names: {sorted(strangers)}"
        return
    order = [places[name] for name in names]
    if order != sorted(order) or order.count(0) > 1 or order.count(2) > 1:
        yield f"phases in the order {names}, not {_ORDER}"
    inner = [name for name in names if places[name] == 1]
    if inner and "pause" in (inner[0], inner[-1]):
        yield f"a pause that no two steady phases surround: {names}"


@invariant
def lateness_is_a_part_of_communication(report: Json) -> Iterator[str]:
    """What a device waited for late ones, and what is charged to communication, are its communication kernels and idle
    time inside MPI calls: never less than those kernels, never more than they and all idle time."""
    for place, device in _places(report):
        counted = device["account"].get("communication", 0) + device.get("late_ns", 0)
        most = device["exposed_comm_ns"] + device["idle_ns"] + device["outside_ns"]
        if not device["exposed_comm_ns"] <= counted <= most:
            yield f"{place}: {counted} ns of communication and lateness, {device['exposed_comm_ns']} in kernels"
