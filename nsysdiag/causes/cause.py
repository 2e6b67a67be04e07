"""What a cause is: its words for people, and the pure functions that find its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nsysdiag.causes.evidence import HostEvidence, Layer
from nsysdiag.gaps.launch_frame import DeviceSide, Explained

HostRule = Callable[[HostEvidence], list[Layer]]
DeviceRule = Callable[[DeviceSide], Explained]


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a device to be idle.

    `host` finds evidence on the launching thread before the launch call, `call` inside it, `device` after it.
    `unresolved` causes say that the trace cannot tell; `accepted` ones are no fault of the host, and coverage leaves
    them out. `tables` are those that the rule needs.
    """

    id: str
    title: str
    meaning: str
    side: str
    tables: tuple[str, ...]
    advice: tuple[str, ...]
    color: str
    picture: str
    unresolved: bool = False
    accepted: bool = False
    host: HostRule | None = None
    call: HostRule | None = None
    device: DeviceRule | None = None
