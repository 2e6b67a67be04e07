"""Copies and memory in the outputs: sentences only where something stands out, a chart that is true."""

from __future__ import annotations

import re

import msgspec
import pytest

from nsysdiag.document.packed import unpack_level
from nsysdiag.document.svg import SLOT, curve_plot
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.memory.facts import DeviceMemory
from nsysdiag.memory.show import memory_facts, memory_level
from nsysdiag.memory.words import copy_sentences, level_sentences, unified_sentences
from nsysdiag.messages import InputError
from nsysdiag.report import DeviceReport
from tests.output.memory_samples import (
    CHURN,
    EXPOSED,
    GIB,
    MEMORY,
    MIB,
    MS,
    PINNING,
    TINY,
    UNIFIED,
    UP,
    in_full,
    level,
)
from tests.output.samples import SAMPLES, device, report

change = msgspec.structs.replace
QUIET_CHURN = change(CHURN, call_ns=0, idle_ns=0)


def memory_sentences(device: DeviceReport) -> list[str]:
    return [*copy_sentences(device), *unified_sentences(device), *level_sentences(device)]


def made(**changes: object) -> DeviceReport:
    """A device of 100 ms with all of it; changes of copies by name."""
    copies = in_full(device().copies)
    fields = {name: changes.pop(name) for name in ("rates", "pinning", "exposed", "tiny") if name in changes}
    return device(copies=change(copies, **fields), **changes)


def test_all_that_there_is_to_say() -> None:
    assert memory_sentences(made(unified_memory=UNIFIED, memory=MEMORY)) == [
        "5.00 ms of copies and sets are exposed, mostly memcpy HtoD, pageable, blocking (3.00 ms); 3.00 ms in the "
        "stream of the neighbouring kernels, so it cannot overlap with them, 3.00 ms in blocking calls. Pin the memory "
        "and copy "
        "asynchronously (cudaMemcpyAsync) on a copy stream, a step ahead.",
        "60 pageable copies (96.0 MiB, 12.0 ms) cannot overlap with compute: HtoD runs at 8.39 GB/s, pinned copies of "
        "similar size at 25.2 GB/s; pinning saves at most 4.00 ms of copy time.",
        "90 copies below 4.00 KiB, 4.5 an iteration, 20.0% of all launches: one takes the GPU 1.00 µs and the host "
        "10.0 µs in its call. Batch them, or copy every few steps.",
        "HtoD copies run at 16.8 GB/s on average; 40 large ones reached 25.8 GB/s; 62.5% of the time in them is "
        "below half of that. That is more than 16 lanes of PCIe gen 3 carry.",
        "DtoD copies run at 537 GB/s on average; the chip's memory allows 1.07 TB/s, half its bandwidth. "
        "50.0% of the time in them is below half of that.",
        "Unified memory moved 60.0 MiB in 300 migrations (9.00 ms, 205 KiB each on average): page fault 40.0 MiB, "
        "eviction 20.0 MiB.",
        "2 blocks of unified memory migrated back and forth at least 3 times (16.0 MiB): CPU and GPU may both access "
        "them. "
        "Prefetch with cudaMemPrefetchAsync, set cudaMemAdvise, or copy explicitly.",
        "12 page faults of the CPU and 900 page faults of the GPU in 40 groups (read 30, write 10; 2.00 ms).",
        "Device memory peaks at 60.0 GiB of 80.0 GiB (75.0%) at 0.150000 s; at most 20.0 GiB were never used.",
        "60 allocations and 40 frees of device memory (5.0 an iteration), 300 MiB asked for; the host spends 3.00 ms "
        "in 110 such calls, the GPU idles 2.00 ms for them. Reuse buffers, or use a caching or stream-ordered "
        "allocator (cudaMallocAsync).",
    ]


@pytest.mark.slow
def test_nothing_to_say() -> None:
    cheap = [change(UP, total_ns=MS - 1)]
    few = change(TINY, count=39, called=39, call_ns=MS - 1)
    quiet = made(rates=cheap, pinning=change(PINNING, pageable_ns=MS - 1), exposed=[], tiny=few)
    assert memory_sentences(quiet) == []
    assert memory_sentences(device()) == []
    text = FORMATS["txt"].render(report([quiet], []), RenderOptions(width=120, details=True)).decode()
    assert "\nCopies and sets\n" not in text
    assert (
        "\nCopies and sets\n"
        in FORMATS["txt"].render(report([made()], []), RenderOptions(width=120, details=True)).decode()
    )


def test_from_a_hundredth_of_the_window_on_costs_are_told() -> None:
    one = [change(EXPOSED[0], exposed_ns=MS)]
    assert len(memory_sentences(made(rates=[], pinning=None, exposed=one, tiny=None))) == 1
    less = [change(EXPOSED[0], exposed_ns=MS - 1)]
    assert memory_sentences(made(rates=[], pinning=None, exposed=less, tiny=None)) == []


def test_briefly_without_rates_that_are_as_they_should_be() -> None:
    fine, slow = change(UP, slow_ns=2 * MS - 1), change(UP, slow_ns=2 * MS)
    for rates, brief in (([fine], 0), ([slow], 1)):
        told = made(rates=rates, pinning=None, exposed=[], tiny=None)
        assert len(copy_sentences(told, brief=True)) == brief
        assert len(memory_sentences(told)) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"large_pageable": 40}, "reached 25.8 GB/s from pageable memory, so the link may do more;"),
        ({"exceeds_pcie": 2}, "below half of that."),
        ({"exceeds_pcie": 6}, "more than 16 lanes of PCIe gen 6 carry."),
    ],
)
def test_rates(changes: dict[str, int], told: str) -> None:
    (sentence,) = memory_sentences(made(rates=[change(UP, **changes)], pinning=None, exposed=[], tiny=None))
    assert told in sentence
    assert ("PCIe" in sentence) == (changes.get("exceeds_pcie", 3) > 2)


def test_without_a_large_copy_there_is_no_rate_to_tell() -> None:
    unknown = change(UP, best_bytes_per_second=None, slow_ns=None, large_count=0, large_pageable=0)
    assert memory_sentences(made(rates=[unknown], pinning=None, exposed=[], tiny=None)) == []


def test_what_pinning_saves_cannot_always_be_told() -> None:
    (sentence,) = memory_sentences(made(rates=[], pinning=change(PINNING, saving_ns=None), exposed=[], tiny=None))
    assert sentence == (
        "60 pageable copies (96.0 MiB, 12.0 ms) cannot overlap with compute; there is no pinned copy of similar "
        "size, so the saving by pinning is unknown."
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ordered": False, "call": "async", "host_memory": "pinned"}, "start it earlier, while kernels run"),
        ({"ordered": True, "call": "async", "host_memory": "pinned"}, "a copy stream and double buffering hide it"),
        ({"ordered": False, "call": "blocking", "host_memory": "pinned"}, "blocking calls. Copy asynchronously"),
        ({"ordered": False, "call": "async", "host_memory": "pageable"}, "Pin the memory"),
        ({"ordered": True, "call": "async", "operation": "memcpy HtoD"}, "on a copy stream, a step ahead."),
        # A kernel makes what comes back: it cannot be copied ahead.
        ({"ordered": True, "call": "async", "operation": "memcpy DtoH"}, "and use what is copied a step later."),
        ({"ordered": None, "call": None, "host_memory": None, "operation": "unified memory HtoD"}, "Prefetch what"),
    ],
)
def test_advice_by_what_stands_in_the_way(changes: dict[str, object], told: str) -> None:
    rows = [change(EXPOSED[0], exposed_ns=5 * MS, **changes)]
    (sentence,) = memory_sentences(made(rates=[], pinning=None, exposed=rows, tiny=None))
    assert told in sentence
    assert ("; all in the stream" in sentence) == bool(changes["ordered"])
    assert ("all in blocking calls" in sentence) == (changes["call"] == "blocking")


@pytest.mark.parametrize(
    ("called", "blocking", "told"),
    [
        (78, 2, " and the host 10.3 µs in its call; 2 calls wait for the copy and the work before it, 500 µs each."),
        (0, 1, "takes the GPU 1.00 µs; 1 call waits for the copy and the work before it, 1.00 ms each."),
        (0, 0, "takes the GPU 1.00 µs."),
    ],
)
def test_tiny_copies_that_wait_are_told_apart(called: int, blocking: int, told: str) -> None:
    tiny = change(TINY, called=called, blocking=blocking, blocking_ns=MS, launches=0 if not called else 400)
    (sentence,) = memory_sentences(made(rates=[], pinning=None, exposed=[], tiny=tiny))
    assert f"{told} Batch them" in sentence


def test_waiting_calls_alone_make_tiny_copies_no_matter() -> None:
    few = change(TINY, count=39, called=0, call_ns=0, blocking=39, blocking_ns=50 * MS)
    assert memory_sentences(made(rates=[], pinning=None, exposed=[], tiny=few)) == []


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({"near_limit": True}, "(75.0%) at 0.150000 s: near the limit."),
        ({"at_least": True, "headroom_bytes": None}, "allocations before the capture are not in the trace."),
        ({"limit_bytes": None, "headroom_bytes": None}, "peaks at 60.0 GiB at 0.150000 s."),
    ],
)
def test_the_peak(changes: dict[str, object], ends: str) -> None:
    memory = change(MEMORY, churn=QUIET_CHURN, **changes)
    (sentence,) = memory_sentences(device(memory=memory))
    assert sentence.endswith(ends)
    assert ("peaks at at least" in sentence) == bool(changes.get("at_least"))


def test_churn_without_iterations_is_a_rate() -> None:
    memory = change(MEMORY, churn=change(CHURN, per_iteration=None))
    assert "(1,000 a second)" in memory_sentences(device(memory=memory))[-1]


def facts_of(memory: DeviceMemory) -> dict[str, str]:
    return {fact.label: fact.kind.text(fact.value) for fact in memory_facts(memory)}


def test_facts_say_where_they_are_lower_bounds() -> None:
    assert facts_of(MEMORY)["Peak"] == "60.0 GiB"
    assert facts_of(MEMORY)["Pools of cudaMallocAsync, at most"] == "2.00 GiB held, 1.00 GiB used"
    assert "Pools of cudaMallocAsync, at most" not in facts_of(change(MEMORY, pools=[]))
    lower = change(MEMORY, at_least=True, headroom_bytes=None, unknown_frees=3)
    facts = facts_of(lower)
    assert (facts["Peak, at least"], facts["Never used, at most"], facts["Frees of unknown memory"]) == (
        "60.0 GiB",
        "–",
        "3",
    )


# ---- the chart -------------------------------------------------------------------------------------------------


def test_the_band_lies_where_the_level_is() -> None:
    """80 GiB is the top: 30, 30, 60, 60 above, 20, 30, 30, 40 below."""
    chart = memory_level(MEMORY, 100)
    assert chart is not None
    plot = curve_plot(chart)
    band, highest = (path.d for path in plot.paths)
    assert highest == f"M0 625V625H{2 * SLOT}V250H{4 * SLOT}"
    assert band == f"{highest}V500H{3 * SLOT}V625H{SLOT}V750H0z"
    assert plot.floors == [("0.000%", "limit 80.0 GiB"), ("100%", "0")]
    assert [label for _y, label in plot.lines] == ["16.0 GiB", "32.0 GiB", "48.0 GiB", "64.0 GiB"]
    assert [hover.tooltip for hover in plot.hovers] == [
        "at 0.090000 s: 20.0 GiB to 30.0 GiB",
        "at 0.115000 s: 30.0 GiB",
        "at 0.140000 s: 30.0 GiB to 60.0 GiB",
        "at 0.165000 s: 40.0 GiB to 60.0 GiB",
    ]


def test_a_limit_far_above_is_left_out() -> None:
    small = change(
        MEMORY, peak_bytes=GIB, lowest=level([0] * 4), highest=level([MIB, GIB, GIB, GIB]), limit_bytes=80 * GIB
    )
    chart = memory_level(small, 2)
    assert chart is not None
    plot = curve_plot(chart)
    assert plot.floors == [("100%", "0")]
    assert "V0H" in plot.paths[1].d
    assert len(plot.hovers) == 2


def test_nothing_was_ever_given_out() -> None:
    none = change(MEMORY, peak_bytes=0, lowest=level([0] * 4), highest=level([0] * 4))
    assert memory_level(none, 100) is None


@pytest.mark.parametrize(
    "changes", [{"lowest": "%"}, {"highest": "AAAA"}, {"buckets": 5}, {"buckets": 0}, {"lowest": level([1, 2, 3])}]
)
def test_damaged_series_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InputError, match="damaged"):
        unpack_level(change(MEMORY, **changes))


def test_the_page_draws_it_all() -> None:
    page = FORMATS["html"].render(SAMPLES["one_device"](), RenderOptions()).decode()
    assert 'id="device-memory"' in page
    assert 'id="unified-memory"' in page
    assert re.search(r'aria-label="Allocated device memory, from [^"]+ at most 60.0 GiB', page)
    assert "limit 80.0 GiB" in page
    plain = FORMATS["html"].render(report([device()], []), RenderOptions()).decode()
    assert 'id="device-memory"' not in plain
    assert 'id="unified-memory"' not in plain


# ---- tables ----------------------------------------------------------------------------------------------------
