"""What limits a device, from its report and from how its gaps came about."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes import CAUSES, HOST_CODE
from nsysdiag.config.settings import Settings
from nsysdiag.counters.measured import measured_filling, measured_tensor
from nsysdiag.diagnosis.bottleneck import triage
from nsysdiag.diagnosis.bursts import Bursts, find_bursts
from nsysdiag.diagnosis.facts import Triage
from nsysdiag.diagnosis.inputs import Filling, Given
from nsysdiag.diagnosis.workload import BURSTS, workload
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.report import DeviceReport


def device_triage(
    report: DeviceReport,
    by_root: GapContext,
    parts: Intervals,
    split: WindowSplit,
    steady: Intervals | None,
    settings: Settings,
) -> Triage | None:
    """The triage of the device that `report` is about; the slices of `by_root` are by root cause. None where nothing
    ran in the window."""
    if split.window_ns == 0:
        return None
    gaps, limits = by_root.frame.gaps, settings.triage
    bursts = find_bursts(gaps, by_root.slices, parts, limits)
    between_ns = int((gaps.end - gaps.start)[bursts.between].sum())
    phases = report.launch.launch_bound
    work = workload(steady, bursts, split.window_ns, between_ns, limits)
    idle = _inside(by_root, bursts) if work.kind == BURSTS else report.root_ledger
    between_launches = phases.causes.get(HOST_CODE, 0) if phases else 0
    return triage(
        Given(
            workload=work,
            split=split,
            idle=idle,
            between_launches_ns=min(between_launches, idle.get(HOST_CODE, 0)),
            launch=report.launch,
            kernels=report.kernels,
            filling=_filling(report),
            tensor_active=measured_tensor(report.gpu_metrics),
            headroom_bytes=report.memory.headroom_bytes if report.memory else None,
            limits=limits,
        )
    )


def _filling(report: DeviceReport) -> Filling | None:
    """Measured before estimated."""
    measured = measured_filling(report.gpu_metrics)
    if measured is not None:
        return Filling(measured, "measured")
    estimated = report.utilization.estimate.sm_active_computing
    return None if estimated is None else Filling(estimated, "estimated from launch shapes")


def _inside(by_root: GapContext, bursts: Bursts) -> dict[str, int]:
    """The root ledger without the gaps between bursts."""
    rows, ns = by_root.slices.rows, by_root.slices.ns
    inside = ~bursts.between[rows.gap]
    total = np.zeros(len(CAUSES), dtype=np.int64)
    np.add.at(total, rows.cause[inside], ns[inside])
    return {cause: int(total[number]) for number, cause in enumerate(CAUSES) if total[number]}
