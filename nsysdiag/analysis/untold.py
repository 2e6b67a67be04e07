"""What no export of nsys tells, however it was captured, and what does."""

from __future__ import annotations

from nsysdiag.model import Untold

UNTOLD = (
    Untold(what="temperature, power draw, and why clocks were low", told_by="nvidia-smi -q -d PERFORMANCE, or DCGM"),
    Untold(what="swapping and page faults of the host", told_by="vmstat 1, or sar -B"),
    Untold(what="device memory that other programs use", told_by="nvidia-smi"),
    Untold(what="generation and width of the PCIe link", told_by="nvidia-smi -q"),
    Untold(what="CPU quotas of a container", told_by="cat /sys/fs/cgroup/cpu.max"),
    Untold(what="hardware errors that cost time (ECC, Xid)", told_by="dmesg, or nvidia-smi -q -d ECC"),
    Untold(what="what limits a single kernel inside", told_by="Nsight Compute"),
)
