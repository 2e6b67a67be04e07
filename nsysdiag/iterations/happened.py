"""What happens in a loop, by name: the operations of a device, and what the threads that launch them call."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct, distinct_values
from nsysdiag.iterations.ranges import Kinds
from nsysdiag.trace.enums import CopyKind
from nsysdiag.trace.strings import Strings

UPDATES = re.compile(
    r"adam|sgd|momentum|multi_?tensor|optimi[sz]er|lamb_|lamb<|rmsprop|adagrad|adafactor|"
    r"apply_?grad|update_?(weight|param)|(weight|param(eter)?)s?_?update",
    re.IGNORECASE,
)
"""Kernels that update the weights of a model."""

NETWORKS = re.compile(
    r"flash|fmha|attention|attn|sdpa|softmax|gemm|nvjet|matmul|cutlass|(layer|group|rms|batch)_?norm|RowwiseMoments|"
    r"^ln_|^bn_|conv(?!er)|relu|gelu|silu|swish|dropout|embedding",
    re.IGNORECASE,
)
"""Kernels of the layers of a network."""
WAITS = re.compile(r"Synchronize")
"""CUDA calls that wait for the device."""

HOST = 1 << 40
"""Codes from here on are of calls of the host, twice that of ranges."""


class Happened(Struct, frozen=True):
    """What shows levels of a device, in order of time: its operations, and the calls and ranges of the threads that
    launch them. `code` is that of the name. Operations have their time on the device, the others on the host."""

    time: IntArray
    end: IntArray
    code: IntArray
    on_host: BoolArray
    uploads: frozenset[int]
    downloads: frozenset[int]
    updates: frozenset[int]
    networks: frozenset[int]
    waits: frozenset[int]
    kernels: frozenset[int]
    issued_at: IntArray
    operations: IntArray

    @classmethod
    def of(
        cls,
        device: DeviceTimeline,
        calls: CallRows,
        ranges: NvtxRanges,
        kinds: Kinds,
        strings: Strings,
        called: Sequence[str] = (),
    ) -> Happened:
        """`called` are the names of the calls; without them no wait is known."""
        operations = device.operations
        rows = np.flatnonzero(device.running & ~operations.migration)
        codes = _codes(device)
        names, code = distinct(codes[rows])
        first = rows[np.unique(code, return_index=True)[1]]
        category, copied = operations.category[first], operations.copy_kind[first]
        kernel = np.isin(category, (Category.KERNEL, Category.GRAPH))
        named = np.flatnonzero((category == Category.KERNEL) & (operations.name[first] >= 0))
        texts = strings.texts(operations.name[first[named]])
        matched = {
            kind: frozenset(int(names[at]) for at, text in zip(named.tolist(), texts, strict=True) if kind.search(text))
            for kind in (UPDATES, NETWORKS)
        }
        host_time, host_code = _on_host(device, calls, ranges, kinds, rows)
        return cls(
            time=np.append(operations.start[rows], host_time),
            end=operations.end[rows],
            code=np.append(codes[rows], host_code),
            on_host=np.append(np.zeros(len(rows), np.bool_), np.ones(len(host_time), np.bool_)),
            uploads=frozenset(names[copied == CopyKind.HOST_TO_DEVICE].tolist()),
            downloads=frozenset(names[copied == CopyKind.DEVICE_TO_HOST].tolist()),
            updates=matched[UPDATES],
            networks=matched[NETWORKS],
            waits=frozenset(HOST + at for at, name in enumerate(called) if WAITS.search(name)),
            kernels=frozenset(names[kernel].tolist()),
            issued_at=np.where(device.launch >= 0, calls.start[device.launch], -1) if len(calls) else device.launch,
            operations=rows,
        )


def _codes(device: DeviceTimeline) -> IntArray:
    """What operations of one name have in common."""
    operations = device.operations
    category = operations.category.astype(np.int64)
    detail = np.where(category == Category.MEMCPY, operations.copy_kind, operations.name)
    detail = np.where(category == Category.GRAPH, operations.graph, detail)
    detail = np.where(category == Category.MEMSET, 0, detail)
    return (category << 34) + detail.astype(np.int64) + 1


def _on_host(
    device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, kinds: Kinds, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """The calls that launch nothing, and the ranges, of the threads that launch the operations."""
    launch = device.launch[rows]
    launch = launch[launch >= 0]
    threads = distinct_values(calls.thread[launch]) if len(launch) else np.empty(0, np.int64)
    others = np.isin(calls.thread, threads)
    others[launch] = False
    # The driver's row of a launch is inside that of the runtime, with the same id.
    others &= ~np.isin(calls.correlation, calls.correlation[launch])
    named = np.isin(ranges.rows.thread, threads) & ~kinds.operator[ranges.rows.name] & ~ranges.rows.communication
    # What is called as often as kernels are launched, such as a query, shows no step.
    called = np.bincount(calls.name[others], minlength=1)
    others[others] = (called <= len(rows) // 2)[calls.name[others]]
    time = np.append(calls.start[others], ranges.rows.start[named])
    code = np.append(HOST + calls.name[others].astype(np.int64), 2 * HOST + kinds.code[ranges.rows.name[named]])
    return time, code


def anchor_of(code: int) -> int:
    """The string id of the name of a kernel; -1 for graphs."""
    return (code & (1 << 34) - 1) - 1 if code >> 34 == Category.KERNEL else -1
