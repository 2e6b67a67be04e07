"""The record of a cause: its texts, its properties for the analysis, and the functions that find its evidence."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from msgspec import Struct, field

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.causes.advice import Advice
from nsysdiag.causes.evidence import HostEvidence, Layer
from nsysdiag.causes.families import Family
from nsysdiag.causes.threshold import Threshold
from nsysdiag.causes.variant import Variant
from nsysdiag.gaps.launch_frame import Case, DeviceSide, Explained


class Rows(Enum):
    """Which rows of the trace show a slice of a cause."""

    OVERHEAD = "the profiler's rows of overhead"
    CALL = "the call of the launching thread"
    LAUNCH = "the call that launched the next operation"
    OS_CALL = "the OS call of the launching thread"
    SCHEDULING = "scheduling events, or CPU samples"


class OwnCall(Struct, frozen=True):
    """Launch calls that belong wholly to a cause, unless evidence inside them says more: a flag and a code into
    `labels` for each row of the table of calls. `text` is the evidence; None means the name of the call."""

    flags: BoolArray
    text: str | None = None
    label: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    labels: tuple[str, ...] = ()


class Lookalike(Struct, frozen=True):
    """A cause, by its id, that looks like another one on the timeline, and how to tell it from that one."""

    cause: str
    difference: str


HostRule = Callable[[HostEvidence], list[Layer]]
OwnCallRule = Callable[[HostEvidence], OwnCall]
DeviceRule = Callable[[DeviceSide], Explained]
BEFORE_THE_QUEUE = 80


class Cause(Struct, frozen=True):
    """One reason for a device to be idle.

    Presentation: `color` of its bars; `opening` of a causal chain, with {thread}, {call}, {label} and {code} (functions
    in CPU samples). None means the call on the thread, or the title if the device waits. The first matching one of the
    `variants` is used; the last one always matches. `sources` are keys of SOURCES for the rule and the plain advice.
    `rows` are the tables searched for evidence of a slice, in order, then the operation that the device waited for.

    Judgment: `family` is the bottleneck of its time, unless a variant names another. `unresolved` causes mean missing
    evidence, which the capabilities `resolved_by` would provide. `accepted` ones are not caused by the host, and
    coverage excludes them. `tables` are those that the rule needs.

    `confirm` describes how to check the cause in Nsight Systems, `confused_with` similar causes.

    Time of `follows_wakeups` causes is a wait until another thread wakes this one, whose own cause is then the root
    cause; `sampled`: CPU samples show the code. Rules: gaps of the launch case `case` belong wholly to it. `host` finds
    evidence on the launching thread before the launch call, `call` inside it, `own_call` in the call as a whole,
    `device` after it. Inside the call, causes claim in the order of `call_order`, then of the registry. If its evidence
    is inside the call, `after_call` labels the time until the operation begins; None for no label.
    """

    id: str
    title: str
    meaning: str
    side: str
    tables: tuple[str, ...]
    advice: Advice
    color: str
    picture: str
    family: Family
    sources: tuple[str, ...]
    variants: tuple[Variant, ...]
    confirm: tuple[str, ...] = ()
    confused_with: tuple[Lookalike, ...] = ()
    opening: str | None = None
    thresholds: tuple[Threshold, ...] = ()
    rows: tuple[Rows, ...] = ()
    unresolved: bool = False
    resolved_by: tuple[str, ...] = ()
    accepted: bool = False
    follows_wakeups: bool = False
    sampled: bool = False
    case: Case | None = None
    host: HostRule | None = None
    call: HostRule | None = None
    own_call: OwnCallRule | None = None
    call_order: int = BEFORE_THE_QUEUE
    after_call: str | None = None
    device: DeviceRule | None = None
