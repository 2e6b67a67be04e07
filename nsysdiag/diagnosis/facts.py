"""Which kind of trouble a device is in: how its work comes, and the kinds in the order of their repair."""

from __future__ import annotations

from nsysdiag.record import Record


class Workload(Record, frozen=True):
    """How work comes to the device, which decides what it is measured by.

    `kind`: `steps`, iterations of about the same length (training); `bursts`, work that comes irregularly with long
    idle stretches between (serving); `unclear`. `why` says what shows it. Of bursts, `between_ns` is the idle time
    between them, which is no loss where nothing was asked for; `judged_ns` is the time that all shares are of: the
    window, of bursts without what lies between them."""

    kind: str
    why: str
    judged_ns: int
    bursts: int = 0
    median_burst_ns: int | None = None
    between_ns: int = 0


class TroubleKind(Record, frozen=True):
    """One kind of trouble: `feed`, `communication`, `batch`, `runtime`, `kernels` or `sizing`.

    `holds` is None where the trace cannot tell. `share` is the part of the judged time that a repair could touch, None
    where it is no matter of time. `evidence` are sentences with the numbers, also where it does not hold; `advice` is
    given where it does."""

    id: str
    title: str
    holds: bool | None
    share: float | None
    evidence: list[str]
    advice: list[str] = []


class Trouble(Record, frozen=True):
    """All kinds in the order in which they are worth repairing, and the one that comes first: `id` is `none` where none
    holds, and `unresolved` where the trace cannot tell whether work reaches the device in time."""

    id: str
    sentence: str
    workload: Workload
    kinds: list[TroubleKind]
