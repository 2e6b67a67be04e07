"""What a cause is: its words for people, and the pure functions that find its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from nsysdiag.causes.evidence import HostEvidence, Layer
from nsysdiag.causes.threshold import Threshold
from nsysdiag.causes.variant import Variant
from nsysdiag.gaps.launch_frame import DeviceSide, Explained

HostRule = Callable[[HostEvidence], list[Layer]]
DeviceRule = Callable[[DeviceSide], Explained]


class Rows(Enum):
    """Which rows of the trace show a slice of a cause."""

    OVERHEAD = "the profiler's rows of overhead"
    CALL = "the call of the launching thread"
    LAUNCH = "the call that launched the next operation"
    OS_CALL = "the OS call of the launching thread"
    SCHEDULING = "scheduling events, or CPU samples"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a device to be idle.

    `host` finds evidence on the launching thread before the launch call, `call` inside it, `device` after it.
    `unresolved` causes say that the trace cannot tell; `accepted` ones are no fault of the host, and coverage leaves
    them out. `tables` are those that the rule needs, `family` is the bottleneck to which its time counts, `rows` where
    the rows behind a slice are looked for, in order; after them comes the operation that the device waited for.
    `sources` are keys of SOURCES. The first of the `variants` that matches is taken; the last takes what is left.
    """

    id: str
    title: str
    meaning: str
    side: str
    tables: tuple[str, ...]
    advice: tuple[str, ...]
    color: str
    picture: str
    family: str
    sources: tuple[str, ...]
    variants: tuple[Variant, ...]
    thresholds: tuple[Threshold, ...] = ()
    rows: tuple[Rows, ...] = ()
    unresolved: bool = False
    accepted: bool = False
    host: HostRule | None = None
    call: HostRule | None = None
    device: DeviceRule | None = None
