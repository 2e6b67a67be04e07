"""What the kinds of bottleneck are judged by."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.causes import CAUSES
from nsysdiag.causes.cause import Loss
from nsysdiag.config.settings import TriageThresholds
from nsysdiag.diagnosis.facts import Workload
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.report import KernelRow, Launch


@dataclass(frozen=True, slots=True)
class Filling:
    """How much of the chip the kernels that compute keep at work while any runs, 0 to 1; `source` says how it is
    known."""

    share: float
    source: str


@dataclass(frozen=True, slots=True)
class Given:
    """`idle` is the root ledger inside the judged time, in ns; the medians are None where nothing was launched or ran.

    `between_launches_ns` is the part of it in which the host computed from one launch to the next, in stretches in
    which launches came slower than the device did their work: overhead of the runtime, not late input.

    `filling` is None where neither counters nor launch shapes tell, `tensor_active` (0 to 1, while kernels run) where
    no counters were captured, `headroom_bytes` where allocations were not traced or the memory's size is unknown."""

    workload: Workload
    split: WindowSplit
    idle: dict[str, int]
    between_launches_ns: int
    launch: Launch
    kernels: list[KernelRow]
    filling: Filling | None
    tensor_active: float | None
    headroom_bytes: int | None
    limits: TriageThresholds

    def share(self, ns: int) -> float:
        """`ns` as a part of the judged time."""
        return ns / self.workload.judged_ns if self.workload.judged_ns else 0.0

    def lost_ns(self, loss: Loss) -> int:
        """Judged idle time that was lost in this way."""
        return sum(ns for cause, ns in self.idle.items() if CAUSES[cause].loss is loss)

    @property
    def unresolved_ns(self) -> int:
        """Judged idle time that the trace does not explain."""
        return sum(ns for cause, ns in self.idle.items() if CAUSES[cause].unresolved)
