"""What the trace does not show, the capture that would show it, and what no capture of nsys shows."""

from __future__ import annotations

from nsysdiag.causes import CAUSES
from nsysdiag.diagnosis.facts import NOTABLE_UNKNOWN
from nsysdiag.events.device import DeviceActivity
from nsysdiag.findings.facts import Finding
from nsysdiag.report import Capability, DeviceReport, NotRecorded
from nsysdiag.trace.capabilities import CPU_SAMPLES, OS_RUNTIME, SCHEDULING, recapture_command
from nsysdiag.units import format_count, format_share

_ALWAYS_WORTH = (OS_RUNTIME, SCHEDULING, CPU_SAMPLES)
_NEEDED = ("kernels", "cuda-api")
MPI = "mpi"
NOTABLE_MIGRATION = 0.1
EACH_RANK = "trace.%h.%p"
"""Under mpirun each rank is profiled separately: nsys inserts its host and process id here."""


def recapture(
    devices: list[DeviceReport], capabilities: list[Capability], findings: list[Finding], frameworks: list[str]
) -> str | None:
    """The `nsys profile` line that records what is missing and what was there; None if nothing is missing. Host code
    without a name needs CPU samples with call chains, and the program's own ranges. MPI calls are asked for where
    `frameworks` of the program has MPI: some versions record them as NVTX ranges only."""
    absent = {each.id for each in capabilities if not each.available and each.recapture}
    present = {capability.id for capability in capabilities if capability.available}
    os_calls = OS_RUNTIME in present | absent
    if not devices:
        needed = absent & {*_NEEDED, *_ALWAYS_WORTH}
        return recapture_command(present | needed, os_calls=os_calls) if needed else None
    unnamed = any(each.unnamed and each.share >= NOTABLE_UNKNOWN for each in findings)
    chains = ("--backtrace=dwarf",) if unnamed and CPU_SAMPLES in absent else ()
    wanted = {
        kind
        for device in devices
        for cause, ns in device.ledger.items()
        if ns > 0
        for kind in CAUSES[cause].resolved_by
    }
    wanted |= {CPU_SAMPLES} if unnamed else set()
    beside = present | ({MPI} if MPI in frameworks else set())
    output = EACH_RANK if MPI in frameworks else "trace"
    if not (absent & wanted or unnamed):
        return None
    return recapture_command(beside | absent & wanted, chains, output, os_calls=os_calls)


def device_notes(
    *, sharing: str | None, malformed: int, narrowed_away: bool, migrated_share: float, batched: bool
) -> list[str]:
    """Sentences about one device that a reader must know before trusting its numbers."""
    notes = [sharing] if sharing else []
    if malformed:
        notes.append(f"{malformed:,} malformed operation rows were left out (no valid start and end).")
    if narrowed_away:
        notes.append("No GPU work of this device is in the chosen time.")
    if migrated_share >= NOTABLE_MIGRATION:
        notes.append(
            f"Pages of unified memory migrated during {format_share(migrated_share, 1)} of the time in which kernels"
            " ran: part of their time is page-fault handling. Prefetch with cudaMemPrefetchAsync."
        )
    if batched:
        notes.append(
            "The driver ran in WDDM mode, which batches launches: launch latency includes the time in its batch."
        )
    return notes


def left_out_gpus(activity: DeviceActivity) -> list[str]:
    """A sentence where there were too many GPUs to analyze them all."""
    if not activity.left_out_gpus:
        return []
    way = ": --same-gpu takes one device number of several processes for one GPU" if activity.assumed_apart else ""
    total = format_count(activity.left_out_gpus + len(activity.devices))
    return [f"work on {total} GPUs: only the {len(activity.devices)} with most operations were analyzed{way}"]


def malformed_warnings(malformed: dict[str, int]) -> list[str]:
    """A sentence for each kind of host rows of which some were left out."""
    return [
        f"{format_count(count)} malformed {kind} row{'s' if count > 1 else ''} left out (no valid start and end)"
        for kind, count in malformed.items()
        if count
    ]


_UNSEEN = (
    ("temperature, power draw, and why clocks were low", "nvidia-smi -q -d PERFORMANCE, or DCGM", "amd-smi metric"),
    ("swapping and page faults of the host", "vmstat 1, or sar -B", ""),
    ("device memory that other programs use", "nvidia-smi", "amd-smi process"),
    ("generation and width of the PCIe link", "nvidia-smi -q", "amd-smi metric --pcie"),
    ("CPU quotas of a container", "cat /sys/fs/cgroup/cpu.max", ""),
    ("hardware errors that cost time (ECC, Xid)", "dmesg, or nvidia-smi -q -d ECC", "dmesg, or amd-smi metric --ecc"),
    ("what limits a single kernel inside", "Nsight Compute", "rocprof-compute"),
)
"""What no such trace shows, the program that does, and its counterpart for GPUs of AMD where that is another one."""
NOT_RECORDED = tuple(NotRecorded(what=what, tool=tool) for what, tool, _ in _UNSEEN)


def not_recorded(frameworks: list[str]) -> list[NotRecorded]:
    """What no such trace shows, with the tools of the GPUs' vendor."""
    if "rocm" not in frameworks:
        return list(NOT_RECORDED)
    return [NotRecorded(what=what, tool=of_amd or tool) for what, tool, of_amd in _UNSEEN]
