"""What is to be said about copies, unified memory and device memory, in sentences; nothing if nothing stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.arrays.groups import summed
from nsysdiag.document.columns import RATE
from nsysdiag.document.view import by_time
from nsysdiag.document.words import counted, instant
from nsysdiag.units import NS_PER, format_bytes, format_count, format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.memory import facts
    from nsysdiag.report import DeviceReport

NOTABLE = 0.01
"""From this share of the window on the cost of copies and allocations is reported."""
MANY_TINY = 0.1
"""Tiny copies are reported too if they are this share of all launches."""
FIRST_TOLD_PCIE = 3
OFTEN_SLOW = 0.25
"""In the short form, rates are reported from this share of slow time on."""
DRIVER_NOTE = (
    "Memory allocated from the driver. The trace does not show how much of it a framework's caching allocator uses, "
    "nor what the driver itself uses."
)
rate: Callable[[float | None], str] = RATE.text
"""A rate: `24.0 GB/s`, a dash if it is not known."""


# ---- copies ----------------------------------------------------------------------------------------------------


def copy_sentences(device: DeviceReport, *, brief: bool = False) -> list[str]:
    """Order, pageable memory and rates if copies cost something; many tiny ones."""
    copies, least, lines = device.copies, _least(device), []
    exposed = [row for row in copies.exposed if row.exposed_ns >= least]
    if exposed:
        lines.append(exposed_sentence(device, exposed))
    if copies.pinning and copies.pinning.pageable_ns >= least:
        lines.append(pinning_sentence(copies.pinning))
    tiny = copies.tiny
    if tiny and tiny.count > 1 and (tiny.call_ns >= least or tiny.count >= MANY_TINY * tiny.launches):
        lines.append(tiny_sentence(tiny))
    for row in copies.rates:
        often_slow = row.slow_ns is not None and row.slow_ns >= OFTEN_SLOW * row.total_ns
        line = rate_sentence(row) if row.total_ns >= least and (often_slow or not brief) else None
        lines += [line] if line else []
    return lines


def _least(device: DeviceReport) -> int:
    return max(round(NOTABLE * device.window_ns), 1)


def rate_sentence(row: facts.CopyRate) -> str:
    """A direction against its limit, or against what its large copies have shown; empty if there is neither."""
    mean = rate(row.bytes / row.total_ns * NS_PER["s"]) if row.total_ns else "–"
    if row.limit_bytes_per_second:
        share = format_share(row.slow_ns or 0, row.total_ns)
        return (
            f"{row.direction} copies run at {mean} on average; the chip's memory allows "
            f"{rate(row.limit_bytes_per_second)}, half its bandwidth. {share} of the time in them is below half of "
            "that."
        )
    if row.best_bytes_per_second is None:
        return ""
    pageable = " from pageable memory, so the link may do more" if row.large_pageable == row.large_count else ""
    proof = ""
    if row.exceeds_pcie >= FIRST_TOLD_PCIE:
        proof = f" That is more than 16 lanes of PCIe gen {row.exceeds_pcie} carry."
    return (
        f"{row.direction} copies run at {mean} on average; {counted(row.large_count, 'large one')} reached "
        f"{rate(row.best_bytes_per_second)}{pageable}; {format_share(row.slow_ns or 0, row.total_ns)} of the time in "
        f"them is below half of that.{proof}"
    )


def pinning_sentence(found: facts.Pinning) -> str:
    """What pageable memory costs, as far as the trace can tell."""
    lead = (
        f"{_copies(found.pageable_count, 'pageable ')} ({format_bytes(found.pageable_bytes)}, "
        f"{format_ns(found.pageable_ns)}) cannot overlap with compute"
    )
    if found.saving_ns is None:
        return f"{lead}; there is no pinned copy of similar size, so the saving by pinning is unknown."
    first = max((row for row in found.rows if row.saving_ns is not None), key=lambda row: row.pageable_ns)
    slow = rate(first.pageable_bytes / first.pageable_ns * NS_PER["s"])
    fast = rate(first.pinned_bytes / first.pinned_ns * NS_PER["s"])
    return (
        f"{lead}: {first.direction} runs at {slow}, pinned copies of similar size at {fast}; pinning "
        f"saves at most {format_ns(found.saving_ns)} of copy time."
    )


def _copies(count: int, kind: str) -> str:
    return counted(count, f"{kind}copy", f"{kind}copies")


def exposed_sentence(device: DeviceReport, rows: list[facts.ExposedCopies]) -> str:
    """Exposed copies by what forbade to overlap them, with what helps."""
    whole, first = device.copies.exposed_ns, rows[0]
    bound = sum(row.exposed_ns for row in device.copies.exposed if row.ordered)
    held = sum(row.exposed_ns for row in device.copies.exposed if row.call == "blocking")
    leads = "mostly" if 2 * first.exposed_ns > whole else "longest"
    most = f", {leads} {exposed_label(first)} ({format_ns(first.exposed_ns)})"
    facts = (
        [f"{_part(bound, whole)} in the stream of the neighbouring kernels, so it cannot overlap with them"]
        if bound
        else []
    )
    facts += [f"{_part(held, whole)} in blocking calls"] if held else []
    more = "; " + ", ".join(facts) if facts else ""
    return f"{format_ns(whole)} of copies and sets are exposed{most}{more}. {exposed_advice(first)}"


def _part(ns: int, whole: int) -> str:
    return "all" if ns == whole else format_ns(ns)


def exposed_label(row: facts.ExposedCopies) -> str:
    """`memcpy HtoD, pinned, async`."""
    return ", ".join(word for word in (row.operation, row.host_memory, row.call) if word)


def exposed_advice(row: facts.ExposedCopies) -> str:
    """What may hide such a copy, if nothing near it needs what it copies: that no trace says."""
    if row.operation.startswith("unified memory"):
        return "Prefetch what kernels need (cudaMemPrefetchAsync), while other kernels run."
    # What a kernel made is copied behind it.
    when = ", and use what is copied a step later" if row.operation.endswith("DtoH") else ", a step ahead"
    if row.host_memory == "pinned" and row.call == "blocking":
        return f"Copy asynchronously (cudaMemcpyAsync) on a copy stream{when}."
    if row.host_memory == "pageable" or row.call == "blocking":
        return f"Pin the memory and copy asynchronously (cudaMemcpyAsync) on a copy stream{when}."
    if row.ordered is not False:
        return "If the kernels do not need it yet, a copy stream and double buffering hide it."
    return "It has a separate stream: start it earlier, while kernels run (prefetch, double buffering)."


def tiny_sentence(tiny: facts.TinyCopies) -> str:
    """How many tiny copies there are, and what one costs on both sides."""
    often = f", {tiny.per_iteration:,.1f} an iteration" if tiny.per_iteration is not None else ""
    share = format_share(tiny.called + tiny.blocking, tiny.launches)
    host = f" and the host {format_ns(tiny.call_ns // tiny.called)} in its call" if tiny.called else ""
    waits = ""
    if tiny.blocking:
        each = format_ns(tiny.blocking_ns // tiny.blocking)
        waits = (
            f"; {counted(tiny.blocking, 'call waits', 'calls wait')} for the copy and the work before it, {each} each"
        )
    return (
        f"{_copies(tiny.count, '')} below {format_bytes(tiny.below_bytes)}{often}, {share} of all launches: one takes "
        f"the GPU {format_ns(tiny.total_ns // tiny.count)}{host}{waits}. Batch them, or copy every few steps."
    )


# ---- unified memory ----------------------------------------------------------------------------------------------


def unified_sentences(device: DeviceReport) -> list[str]:
    """What moved and why, thrashing, and faults."""
    found = device.unified_memory
    if found is None:
        return []
    lines = [_moved(found)] if found.rows else []
    thrashing = found.thrashing
    if thrashing and thrashing.blocks:
        lines.append(
            f"{counted(thrashing.blocks, 'block')} of unified memory migrated back and forth at least "
            f"{thrashing.moves} times "
            f"({format_bytes(thrashing.bytes)}): CPU and GPU may both access them. Prefetch with cudaMemPrefetchAsync, "
            "set cudaMemAdvise, or copy explicitly."
        )
    faults = [counted(found.cpu_faults, "page fault") + " of the CPU"] if found.cpu_faults else []
    if found.gpu_fault_groups:
        access = ", ".join(f"{kind} {format_count(count)}" for kind, count in found.gpu_fault_access.items())
        faults.append(
            f"{counted(found.gpu_faults or 0, 'page fault')} of the GPU in {counted(found.gpu_fault_groups, 'group')} "
            f"({access}; {format_ns(found.gpu_fault_ns or 0)})"
        )
    return [*lines, f"{' and '.join(faults)}."] if faults else lines


def _moved(found: facts.UnifiedMemory) -> str:
    by_cause = by_time(summed({row.cause: row.bytes} for row in found.rows))
    causes = ", ".join(f"{cause} {format_bytes(size)}" for cause, size in by_cause)
    return (
        f"Unified memory moved {format_bytes(found.bytes)} in {counted(found.count, 'migration')} "
        f"({format_ns(found.total_ns)}, {format_bytes(found.bytes / found.count)} each on average): {causes}."
    )


# ---- device memory -----------------------------------------------------------------------------------------------


def level_sentences(device: DeviceReport) -> list[str]:
    """The peak, then what is wrong: near the limit, churn."""
    memory = device.memory
    if memory is None:
        return []
    lines = [peak_sentence(memory)]
    if max(memory.churn.call_ns, memory.churn.idle_ns) >= _least(device):
        lines.append(churn_sentence(memory.churn, device.window_ns))
    return lines


def peak_sentence(memory: facts.DeviceMemory) -> str:
    """The peak against the limit, and what is left."""
    least = "at least " if memory.at_least else ""
    limit = memory.limit_bytes
    of = f" of {format_bytes(limit)} ({format_share(memory.peak_bytes, limit)})" if limit else ""
    lead = f"Device memory peaks at {least}{format_bytes(memory.peak_bytes)}{of} at {instant(memory.peak_at_ns)}"
    if memory.near_limit:
        return f"{lead}: near the limit."
    if memory.at_least:
        return f"{lead}: allocations before the capture are not in the trace."
    if memory.headroom_bytes is None:
        return f"{lead}."
    return f"{lead}; at most {format_bytes(memory.headroom_bytes)} were never used."


def churn_sentence(churn: facts.MemoryChurn, window_ns: int) -> str:
    """How often memory is allocated and freed, what it costs, and what helps."""
    events = churn.allocations + churn.frees
    often = format_count(events)
    if churn.per_iteration is not None:
        often = f"{churn.per_iteration:,.1f} an iteration"
    elif window_ns:
        often = f"{format_count(round(events * NS_PER['s'] / window_ns))} a second"
    return (
        f"{counted(churn.allocations, 'allocation')} and {counted(churn.frees, 'free')} of device memory ({often}), "
        f"{format_bytes(churn.allocated_bytes)} asked for; the host spends {format_ns(churn.call_ns)} in "
        f"{counted(churn.calls, 'such call')}, the GPU idles {format_ns(churn.idle_ns)} for them. Reuse buffers, or "
        "use a caching or stream-ordered allocator (cudaMallocAsync)."
    )
