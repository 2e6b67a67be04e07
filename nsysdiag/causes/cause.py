"""What a cause is: its words for people, what the analysis asks of it, and the functions that find its evidence."""

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
    """Launch calls that are wholly a cause's, where nothing inside them says more: a flag and a code into `labels` for
    each row of the table of calls. `text` is the evidence, None: the name of the call."""

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

    For people: `color` is that of its bars, `opening` how a causal chain begins (with {thread}, {call}, {label} and
    {code}, what CPU samples were in; None: the call on the thread, or the title where the device waits). The first of
    the `variants` that matches is taken; the last takes what is left. `sources` are keys of SOURCES: the documents
    behind the rule and the plain advice. `rows` is where the rows behind a slice are looked for, in order; after them
    comes the operation that the device waited for.

    How it is judged: `family` is the bottleneck to which its time counts where a variant names no other. `unresolved`
    causes say that the trace cannot tell, and the capabilities `resolved_by` would; `accepted` ones are no fault of the
    host, and coverage leaves them out. `tables` are those that the rule needs.

    `confirm` says how to see in Nsight Systems that the cause is right, `confused_with` what looks alike.

    What its time is: `follows_wakeups` where the thread waits until another one wakes it, and that one's own cause is
    the root; `sampled` where CPU samples show what it was in.

    The rules: gaps of the launch case `case` are wholly its own. `host` finds evidence on the launching thread before
    the launch call, `call` inside it, `own_call` in the call as a whole, `device` after it. Inside the call causes
    claim in the order of `call_order`, then of the registry. Where its evidence is inside the call, `after_call` says
    what goes on until the operation begins; None: nothing.
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
