"""Physical GPUs: which one an operation ran on, what it is called, and whose time slice it was in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.events.identity import pid_of
from nsysdiag.events.rows import Rows, coded_tuples
from nsysdiag.limits import MOST_GPUS

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

UNKNOWN_GPU = "GPU"
WARP = 32
"""Threads of a warp if the export does not say: all NVIDIA GPUs have so many."""
SAVE_END, RESTORE_START, CONTEXT_START = 7, 8, 9
"""Tags of GPU context switches, as ENUM_GPU_CTX_SWITCH has them. The first ends a time slice, the others begin one."""

# The number of SMs, then what SmLimits holds, in its order.
_LIMITS = (
    *("smCount", "maxWarpsPerSm", "maxBlocksPerSm", "maxRegistersPerSm", "maxShmemPerSm"),
    *("threadsPerWarp", "computeMajor", "computeMinor"),
)
_OLD_LIMITS = (
    *("numMultiprocessors", "maxWarpsPerMultiprocessor", "maxBlocksPerMultiprocessor"),
    *("maxRegistersPerMultiprocessor", "maxSharedMemoryPerMultiprocessor"),
    *("numThreadsPerWarp", "computeCapabilityMajor", "computeCapabilityMinor"),
)


_NO_CUDA = re.compile(
    r"\b(Intel|AMD|Radeon|ATI|Microsoft|ASPEED|Matrox|VMware|VirtIO|Basic (Display|Render)|llvmpipe)\b", re.IGNORECASE
)


class SmLimits(Struct, frozen=True):
    """What one SM holds at a time; 0 if the export does not say. `shared_memory` is in bytes, `compute` the compute
    capability, as in (8, 0)."""

    warps: int = 0
    blocks: int = 0
    registers: int = 0
    shared_memory: int = 0
    threads_per_warp: int = WARP
    compute: tuple[int, int] = (0, 0)


class Gpu(Struct, frozen=True):
    """A physical GPU as the export describes it; `sm_count` is None if it does not say."""

    name: str
    sm_count: int | None
    limits: SmLimits = SmLimits()


class DeviceKeys(Struct, frozen=True):
    """`index` of each operation points into `keys`; `gpu_id` is the export's id of the GPU, None if it is unknown.

    `assumed_apart` says that several processes used the same device number without a map to GPUs. The index of
    operations on GPUs that were `left_out` is -1.
    """

    index: IntArray
    keys: list[str]
    gpu_id: list[int | None]
    ids: list[list[tuple[int, int]]]
    assumed_apart: bool
    left_out: int = 0


def device_keys(trace: Trace, process: IntArray, device: IntArray, *, same_gpu: bool) -> DeviceKeys:
    """Group operations by GPU: through TARGET_INFO_CUDA_DEVICE where it has the pair, else by (process, device number).

    `same_gpu` unites equal device numbers of different processes where no map says what they are.
    """
    index, pairs = coded_tuples(process, device)
    rows = trace.read("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid").tuples()
    # Sorted backwards: of rows that contradict each other the lowest GPU stays.
    gpu_of = {(pid, ordinal): gpu for gpu, ordinal, pid in sorted(rows, reverse=True) if gpu >= 0}
    known = [gpu_of.get((pid_of(owner), ordinal)) for owner, ordinal in pairs]
    # A number without a GPU may be shared where it occurs twice, or reads like a GPU that another process means.
    unmapped = [ordinal for (_, ordinal), gpu in zip(pairs, known, strict=True) if gpu is None]
    ambiguous = len(set(unmapped)) < len(unmapped) or not set(unmapped).isdisjoint(known)
    apart = ambiguous and not same_gpu
    names = [_key(pair, gpu, apart=apart) for pair, gpu in zip(pairs, known, strict=True)]
    keys = sorted(set(names), key=_natural)
    position = {key: place for place, key in enumerate(keys)}
    place_of_pair = np.array([position[name] for name in names], dtype=np.int32)
    gpu_id: list[int | None] = [None] * len(keys)
    ids: list[list[tuple[int, int]]] = [[] for _ in keys]
    for (owner, ordinal), gpu, name in zip(pairs, known, names, strict=True):
        gpu_id[position[name]] = gpu
        ids[position[name]].append((pid_of(owner), ordinal))
    index = constant(place_of_pair, len(index)) if len(pairs) == 1 else place_of_pair.take(index)
    return DeviceKeys(index, keys, gpu_id, [sorted(each) for each in ids], apart)


def busiest(keys: DeviceKeys) -> DeviceKeys:
    """Those with most operations, MOST_GPUS at most: no machine has more, and each costs an analysis of its own."""
    if len(keys.keys) <= MOST_GPUS:
        return keys
    count = np.bincount(keys.index, minlength=len(keys.keys))
    kept = np.sort(np.argsort(-count, kind="stable")[:MOST_GPUS])
    place = np.full(len(keys.keys), -1, dtype=np.int32)
    place[kept] = np.arange(MOST_GPUS)
    chosen = kept.tolist()
    return DeviceKeys(
        place.take(keys.index),
        [keys.keys[at] for at in chosen],
        [keys.gpu_id[at] for at in chosen],
        [keys.ids[at] for at in chosen],
        keys.assumed_apart,
        len(keys.keys) - MOST_GPUS,
    )


def _key(pair: tuple[int, int], gpu: int | None, *, apart: bool) -> str:
    if gpu is not None:
        return f"gpu{gpu}"
    return f"gpu{pair[1]}-pid{pid_of(pair[0])}" if apart else f"gpu{pair[1]}"


def _natural(key: str) -> tuple[int, str]:
    number = key.removeprefix("gpu").partition("-")[0]
    return (int(number), key) if number.lstrip("-").isdigit() else (0, key)


def gpus_present(trace: Trace) -> int | None:
    """How many GPUs that CUDA can use the machine has; None if the trace does not say. Adapters without SMs, where
    others have theirs, are none, nor are those of other vendors and basic display adapters."""
    table = trace.read("TARGET_INFO_GPU", "id", "smCount", "name")
    names = [name or "" for name in table.text("name").texts()]
    capable = np.array([_NO_CUDA.search(name) is None for name in names], dtype=np.bool_)
    if (table["smCount"] > 0).any():
        capable &= table["smCount"] > 0
    return len(distinct_values(table["id"][capable])) or None


def describe(trace: Trace, gpu_id: int | None, ids: list[tuple[int, int]]) -> Gpu:
    """A GPU: by its id, else by the process's device number, else what all GPUs have in common."""
    known = set(ids)
    for pid, number, *described in trace.read("TARGET_INFO_CUDA_GPU", "pid", "deviceId", "name", *_OLD_LIMITS).tuples():
        if (pid, number) in known:
            return _gpu(*described)
    table = trace.read("TARGET_INFO_GPU", "id", "cuDevice", "name", *_LIMITS).tuples()
    rows = [(number, ordinal, _gpu(*described)) for number, ordinal, *described in table]
    if gpu_id is not None:
        matching = [gpu for number, _, gpu in rows if number == gpu_id]
    else:
        ordinals = {ordinal for _, ordinal in ids}
        cuda = {gpu for _, _, gpu in rows if gpu.sm_count} or {gpu for _, _, gpu in rows}
        matching = list(cuda) if len(cuda) == 1 else [gpu for _, ordinal, gpu in rows if ordinal in ordinals]
    return matching[0] if matching else Gpu(UNKNOWN_GPU, None)


def _gpu(name: str | None, *numbers: int) -> Gpu:
    sm_count, warps, blocks, registers, shared, width, *compute = (max(number, 0) for number in numbers)
    limits = SmLimits(warps, blocks, registers, shared, width or WARP, (compute[0], compute[1]))
    return Gpu(name or UNKNOWN_GPU, sm_count or None, limits)


class TimeSlices(Rows, frozen=True):
    """Time slices [start, end) that a GPU gave to a process (globalPid)."""

    start: IntArray
    end: IntArray
    process: IntArray
    gpu: IntArray


def read_time_slices(trace: Trace) -> TimeSlices:
    """Slices from a context's restore or start to the next start or save on its GPU (GPU_CONTEXT_SWITCH_EVENTS, earlier
    FECS_EVENTS); unknown processes are left out."""
    columns = trace.read("GPU_CONTEXT_SWITCH_EVENTS", "tag", "seqNo", "timestamp", "globalPid", "gpuId")
    telling = np.isin(columns["tag"], (SAVE_END, RESTORE_START, CONTEXT_START))
    tag, time, process, gpu, number = (
        columns[name][telling] for name in ("tag", "timestamp", "globalPid", "gpuId", "seqNo")
    )
    order = np.lexsort((number, time, gpu))
    tag, time, process, gpu = tag[order], time[order], process[order], gpu[order]
    begins = (tag[:-1] != SAVE_END) & (gpu[1:] == gpu[:-1]) & (process[:-1] > 0) if len(tag) else np.zeros(0, bool)
    return TimeSlices(time[:-1][begins], time[1:][begins], process[:-1][begins], gpu[:-1][begins])


def slices_of_others(slices: TimeSlices, gpu_id: int | None, process: int) -> Intervals:
    """The time that the GPU spent in slices of other processes, a set. Without a GPU id the trace must be of one."""
    if gpu_id is None and len(distinct_values(slices.gpu)) > 1:
        return Intervals.empty()
    others = slices.process != process
    if gpu_id is not None:
        others &= slices.gpu == gpu_id
    return union(Intervals(slices.start[others], slices.end[others]))
