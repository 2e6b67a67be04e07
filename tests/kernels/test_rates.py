"""Rates of collectives: as nccl-tests define them, from the payloads of NCCL's calls, and never above a peak."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.document.view import Context
from nsysdiag.events.collectives import Collectives
from nsysdiag.events.nvtx import FIELD, MESSAGE, RANKS
from nsysdiag.kernels.communication import _rates
from nsysdiag.kernels.facts import CollectiveKind
from nsysdiag.kernels.show import bandwidth, bandwidth_rows
from nsysdiag.peaks import PRECISIONS, dense_peak, host_link_of, link_of, memory_of, peer_link_of
from tests.builder import TraceBuilder, global_tid
from tests.ledger.traces import only_device
from tests.output.samples import communication_of, device, report

NCCL, OPERATION, MADE = 3, 7, 8
COMMUNICATOR, MIB = 17, 1 << 20
GIGA = 1e9


def ran(message: int, ranks: int, *lengths: int, in_switch: bool = False) -> Collectives:
    """Kernels one after another, of one message."""
    end = np.cumsum(np.array(lengths, dtype=np.int64))
    same = np.ones(len(lengths), dtype=np.int64)
    none = np.zeros(len(lengths), dtype=np.int64)
    return Collectives(none, end - lengths, end, none, none, none, same * message, same * ranks, (same * in_switch) > 0)


@pytest.mark.parametrize(
    ("kind", "algorithm", "bus"),
    [
        ("AllReduce", 1.0, 2 * 7 / 8),
        ("AllGather", 8.0, 7.0),
        ("ReduceScatter", 8.0, 7.0),
        ("AllToAll", 8.0, 7.0),
        ("Broadcast", 1.0, 1.0),
        ("Reduce", 1.0, 1.0),
        ("SendRecv", 1.0, 1.0),
    ],
)
def test_factors_of_nccl_tests_on_eight_ranks(kind: str, algorithm: float, bus: float) -> None:
    """A message of as many bytes as the kernel takes ns: 1 GB/s. That of AllGather is the part of one rank."""
    found = _rates(ran(8 * MIB, 8, 8 * MIB), kind, None)
    assert found["algorithm_bytes_per_second"] == pytest.approx(algorithm * GIGA)
    assert found["bus_bytes_per_second"] == found["best_bus_bytes_per_second"] == pytest.approx(bus * GIGA)


def test_waits_count_in_the_mean_and_not_in_the_best() -> None:
    found = _rates(ran(MIB, 0, *[MIB] * 20, 20 * MIB), "Broadcast", None)
    assert found["bus_bytes_per_second"] == pytest.approx(21 / 40 * GIGA)
    assert found["best_bus_bytes_per_second"] == pytest.approx(GIGA)


@pytest.mark.parametrize(("message", "ranks", "kind"), [(0, 8, "AllReduce"), (MIB, 0, "AllReduce"), (MIB, 8, "Other")])
def test_nothing_is_told_without_sizes_ranks_or_a_kind(message: int, ranks: int, kind: str) -> None:
    assert _rates(ran(message, ranks, 100), kind, None) == {}


def test_a_rate_above_the_peak_is_refused() -> None:
    found = _rates(ran(8 * MIB, 8, 8 * MIB // 400), "AllReduce", 450e9)
    assert found == {"sized": 1, "refused": "no rate: 700 GB/s is more than NVLink carries each way (450 GB/s)"}
    assert "refused" not in _rates(ran(8 * MIB, 8, 8 * MIB // 200), "AllReduce", 450e9)


# nccl-tests on 8 H100 say 480 GB/s of bus bandwidth with NVLink SHARP, which is 309 GB/s on each link of 450 GB/s.
ON_EIGHT = 8 * MIB * 7 * 2 * 1000 // (8 * 480)


@pytest.mark.parametrize(("switch", "named"), [(True, False), (True, True), (False, True)])
def test_switches_that_add_up(switch: bool, named: bool) -> None:
    found = _rates(ran(8000 * MIB, 8, ON_EIGHT, in_switch=named), "AllReduce", 450e9, switch=switch)
    assert found["best_bus_bytes_per_second"] == pytest.approx(480e9, rel=0.001)
    assert found["best_link_bytes_per_second"] == pytest.approx(480e9 * 9 / 14, rel=0.001)
    assert found["in_switch"] == 1


@pytest.mark.parametrize(("rate", "told"), [(480e9, "faster than NVLink, unless"), (300e9, "by the names of kernels")])
def test_the_report_says_why(rate: float, told: str) -> None:
    made = device(communication=communication_of([]))
    kind = CollectiveKind(
        kind="AllReduce", count=1, total_ns=1, exposed_ns=1, overlapped_ns=0, sized=1, bus_bytes_per_second=rate,
        best_bus_bytes_per_second=rate, best_link_bytes_per_second=rate * 9 / 14, in_switch=1,
    )  # fmt: skip
    found = replace(made, communication=replace(made.communication, kinds=[kind], link_bytes_per_second=450e9))
    section = bandwidth(found, Context.of(report([found], [])))
    assert section is not None
    assert told in str(section)
    assert bandwidth_rows(found)[-1].share == pytest.approx(rate * 9 / 14 / 450e9)


def test_without_such_switches_the_same_rate_is_refused() -> None:
    assert "refused" in _rates(ran(8000 * MIB, 8, ON_EIGHT), "AllReduce", 450e9)
    assert "refused" in _rates(ran(2000 * MIB, 8, ON_EIGHT), "AllGather", 450e9, switch=True)


def test_more_than_switches_can_save_is_refused() -> None:
    assert "refused" in _rates(ran(8000 * MIB, 8, ON_EIGHT // 2), "AllReduce", 450e9, switch=True)


@pytest.mark.parametrize(
    ("name", "to_host", "between", "bf16"),
    [
        ("Tesla V100-SXM2-16GB", 15.754e9, 150e9, None),
        ("NVIDIA A100-SXM4-80GB", 31.508e9, 300e9, 312e12),
        ("NVIDIA A100-PCIE-40GB", 31.508e9, 31.508e9, 312e12),
        ("NVIDIA H100 80GB HBM3", 63.015e9, 450e9, 989.4e12),
        ("NVIDIA GH200 120GB", 450e9, 450e9, 989.4e12),
        ("Tesla T4", 15.754e9, 15.754e9, None),
        ("NVIDIA GeForce RTX 3080", 31.508e9, 31.508e9, None),
        ("AMD Instinct MI300X", None, None, None),
    ],
)
def test_other_peaks_by_name(name: str, to_host: float | None, between: float | None, bf16: float | None) -> None:
    up, peer = host_link_of(name), peer_link_of(name)
    assert (up and up.rate, peer and peer.rate) == (to_host, between)
    assert dense_peak(name, "bf16") == bf16


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Tesla T4", 320064000000),
        ("NVIDIA A100-SXM4-80GB", 2039040000000),
        ("NVIDIA A100-SXM4-40GB", 1555200000000),
        ("NVIDIA H200", 4916736000000),
        ("NVIDIA GH200 120GB", None),
        ("Some GPU", None),
    ],
)
def test_memory_as_published_and_as_traces_have_it(name: str, told: int | None) -> None:
    assert memory_of(name) == (None if told is None else pytest.approx(told, rel=0.001))


@pytest.mark.parametrize("name", ["NVIDIA H100 PCIe", "NVIDIA B200", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S"])
def test_a_wider_precision_is_never_faster(name: str) -> None:
    peaks = [peak for each in PRECISIONS[:-1] if (peak := dense_peak(name, each)) is not None]
    assert peaks == sorted(peaks, reverse=True)


@pytest.mark.parametrize(
    ("name", "each_way"),
    [
        ("Tesla V100-SXM2-16GB", 150e9),
        ("NVIDIA A100-SXM4-80GB", 300e9),
        ("NVIDIA H100 80GB HBM3", 450e9),
        ("NVIDIA H100 PCIe", 300e9),
        ("NVIDIA GH200 120GB", 450e9),
        ("NVIDIA B200", 900e9),
        ("NVIDIA GB300", 900e9),
        ("NVIDIA A100-PCIE-40GB", None),
        ("Tesla T4", None),
        ("NVIDIA L20", None),
    ],
)
def test_peaks_by_name(name: str, each_way: float | None) -> None:
    assert link_of(name) == each_way


def payload(schema: int, fields: bytes) -> bytes:
    return struct.pack("<IIIIQQ", NCCL, 0, schema, 0, len(fields), 32 + len(fields)) + fields


def program(*, made: bool = True, blobs: bool = True) -> TraceBuilder:
    """A communicator of four ranks, a call with a kernel, a group of two calls with one, and a group with two kernels.

    thread   [CommInitRank][AllReduce l1][GroupStart][AllReduce][AllReduce][GroupEnd l2][.. GroupEnd l3 l4]
    """
    trace = TraceBuilder(schema="3.24.8").nvtx("NCCL", 1, None, domain=NCCL, event_type=75)
    for schema, names in ((OPERATION, (FIELD, MESSAGE)), (MADE, (FIELD, RANKS))):
        for at, name in enumerate(names):
            entry = {"domainId": NCCL, "schemaId": schema, "idx": at, "name": name, "offset": 8 * at}
            trace.row("NVTX_PAYLOAD_SCHEMA_ENTRIES", entry)

    def call(text: str, start: int, data: bytes | None = None) -> None:
        values = {"start": start, "end": start + 900, "eventType": 59, "domainId": NCCL, "text": text}
        blob = {"binaryData": data} if data and blobs else {}
        trace.row("NVTX_EVENTS", {**values, "globalTid": global_tid((4242, 4242)), **blob})

    size = payload(OPERATION, struct.pack("<Qq", COMMUNICATOR, 4 * MIB))
    if made:
        call("ncclCommInitRank", 10, payload(MADE, struct.pack("<Qii", COMMUNICATOR, 4, 0)))
    call("ncclAllReduce", 1_000, size)
    groups = ["ncclGroupStart", "ncclAllReduce", "ncclAllReduce", "ncclGroupEnd"]
    for at, name in enumerate(groups + groups):
        call(name, 2_000 + 1_000 * at, size if name == "ncclAllReduce" else None)
    for at, launched in enumerate((1_100, 5_100, 9_100, 9_300)):
        start = 100_000 + 50_000 * at
        trace.kernel(start, start + 40_000, name="ncclDevKernel_AllReduce_Sum_f32", launch=(launched, launched + 100))
    return trace


def all_reduce(trace: TraceBuilder, folder: Path) -> CollectiveKind:
    (found,) = only_device(trace, folder).communication.kinds
    return found


def test_from_payloads(tmp_path: Path) -> None:
    """4 MiB in 40 µs, then two of these in 40 µs; of two kernels of a group nothing says which has what."""
    found = all_reduce(program(), tmp_path)
    assert (found.count, found.sized) == (4, 2)
    assert found.algorithm_bytes_per_second == pytest.approx(12 * MIB / 80_000 * GIGA)
    assert found.bus_bytes_per_second == pytest.approx(12 * MIB / 80_000 * GIGA * 2 * 3 / 4)


@pytest.mark.parametrize("lacking", [{"made": False}, {"blobs": False}])
def test_without_payloads(tmp_path: Path, lacking: dict[str, bool]) -> None:
    found = all_reduce(program(**lacking), tmp_path)
    assert (found.sized, found.bus_bytes_per_second, found.refused) == (0, None, "")
