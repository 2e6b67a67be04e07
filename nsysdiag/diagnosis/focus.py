"""The phase that the headline and the findings are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases

LEAST_WORK = 0.05
"""Of the busiest device's work: a device with less is merely touched, and no part of the job's account."""
KERNELS = ("kernels", "parallelism")


@dataclass(frozen=True, slots=True)
class Focus:
    """The set of time `parts` and the places of its phases; `phase` is the place of the one, None where it is all."""

    parts: Intervals
    places: list[int]
    phase: int | None


def focus_of(phases: JobPhases, devices: list[list[PhaseDevice]]) -> Focus:
    """Of the judged phases the one with most time outside of kernels; all phases of a cold start. `devices` holds a
    record for each device and phase."""
    if not phases.phases:
        return Focus(Intervals.empty(), [], None)
    if phases.basis in ("cold", "none") or not phases.judged:
        places = list(range(len(phases.phases)))
        return Focus(Intervals.of([(phases.start, phases.end)]), places, None)
    at = max(phases.judged, key=lambda place: (_outside_kernels([each[place] for each in devices]), -place))
    phase = phases.phases[at]
    return Focus(Intervals.of([(phase.start, phase.end)]), [at], at)


def working(devices: list[PhaseDevice]) -> list[PhaseDevice]:
    """The devices that are not merely touched."""
    work = [each.compute_ns + each.exposed_comm_ns + each.exposed_copy_ns for each in devices]
    most = max(work, default=0)
    return [each for each, ns in zip(devices, work, strict=True) if ns >= LEAST_WORK * most]


def window_ns(device: PhaseDevice) -> int:
    """The time of the phase inside the device's window."""
    return device.compute_ns + device.exposed_comm_ns + device.exposed_copy_ns + device.idle_ns


def job_account(devices: list[PhaseDevice]) -> dict[str, int]:
    """The time of all devices that work, by bottleneck."""
    return summed(device.account for device in working(devices))


def summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Time by name, added up name by name."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def _outside_kernels(devices: list[PhaseDevice]) -> int:
    return sum(ns for name, ns in job_account(devices).items() if name not in KERNELS)


def added(parts: list[PhaseDevice]) -> PhaseDevice:
    """Several phases of one device as one."""
    return PhaseDevice(
        key=parts[0].key,
        compute_ns=sum(part.compute_ns for part in parts),
        exposed_comm_ns=sum(part.exposed_comm_ns for part in parts),
        exposed_copy_ns=sum(part.exposed_copy_ns for part in parts),
        idle_ns=sum(part.idle_ns for part in parts),
        outside_ns=sum(part.outside_ns for part in parts),
        ledger=summed(part.ledger for part in parts),
        account=summed(part.account for part in parts),
        account_base=parts[0].account_base,
    )
