"""Which GPU of the metrics a device is, and what the trace says about the chip: its highest clock and bandwidth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Chip:
    """A row of TARGET_INFO_GPU. `memory_bytes_per_second` and `clock_hz` are the chip's maximum, None where the trace
    does not say."""

    number: int
    ordinal: int
    memory_bytes_per_second: int | None
    clock_hz: int | None


def read_chips(trace: Trace) -> list[Chip]:
    """The GPUs that the trace describes."""
    names = ("id", "cuDevice", "memoryBandwidth", "clockRate")
    table = trace.read("TARGET_INFO_GPU", *names)
    rows = zip(*(table[name].tolist() for name in names), strict=True)
    chips = {Chip(number, ordinal, memory or None, clock or None) for number, ordinal, memory, clock in rows}
    return sorted(chips, key=lambda chip: (chip.number, chip.ordinal))


def gpu_numbers(devices: Sequence[DeviceTimeline], chips: list[Chip], measured: set[int]) -> dict[str, int]:
    """The GPU of each device, by the device's key; devices of which it is not certain are left out.

    By the trace's map of devices; else the only GPU there is; else by the CUDA number of the GPU, where no other device
    has it too: processes that see different GPUs may use one number for several.
    """
    found = {device.key: device.gpu_id for device in devices if device.gpu_id is not None}
    open_ = [device for device in devices if device.gpu_id is None]
    numbers = {chip.number for chip in chips} or measured
    if len(numbers) == 1 and (chips or len(devices) == 1):
        return found | {device.key: next(iter(numbers)) for device in open_}
    by_ordinal = {device.key: _by_ordinal(device, chips) for device in open_}
    claimed = Counter([*found.values(), *by_ordinal.values()])
    return found | {key: number for key, number in by_ordinal.items() if number is not None and claimed[number] == 1}


def _by_ordinal(device: DeviceTimeline, chips: list[Chip]) -> int | None:
    ordinals = {ordinal for _, ordinal in device.ids}
    numbers = {chip.number for chip in chips if chip.ordinal in ordinals}
    return next(iter(numbers)) if len(ordinals) == len(numbers) == 1 else None


def chip_of(number: int, chips: list[Chip]) -> Chip | None:
    """The description of a GPU, None where there is none, or several that differ."""
    found = [chip for chip in chips if chip.number == number]
    return found[0] if len(found) == 1 else None
