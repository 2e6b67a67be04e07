"""Which collective a communication kernel is: by its name, by the NCCL call that launched it, by the call's payload."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.events.collectives import KINDS, Collectives, find_collectives, kind_of
from nsysdiag.events.nvtx import FIELD, read_ranges
from nsysdiag.pipeline.reading import read_activity
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder, global_tid

if TYPE_CHECKING:
    from pathlib import Path

NCCL, SCHEMA = 3, 16_777_223
GENERIC = "ncclDevKernel_Generic_4"


def collectives_of(trace: TraceBuilder, folder: Path) -> Collectives:
    """Those of the only device."""
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        ranges = read_ranges(opened)
        activity = read_activity(opened, lambda: ranges, Settings(communication_patterns=("nccl",)))
        (device,) = activity.devices
        return find_collectives(device, activity.api_calls.rows, ranges, opened.strings)


def kinds(found: Collectives) -> list[str]:
    return [KINDS[kind] for kind in found.kind.tolist()]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "AllReduce"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", "AllReduce"),
        ("ncclAllReduceRingLLKernel_sum_f32", "AllReduce"),
        ("ncclDevKernel_AllGather_RING_LL", "AllGather"),
        ("ncclKernel_ReduceScatter_RING_SIMPLE_Sum_half", "ReduceScatter"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL", "Reduce"),
        ("ncclDevKernel_Broadcast_RING_LL", "Broadcast"),
        ("ncclBcast", "Broadcast"),
        ("ncclDevKernel_SendRecv", "SendRecv"),
        ("ncclSendRecvKernel_copy_i8", "SendRecv"),
        ("ncclSend", "SendRecv"),
        ("ncclAlltoAll", "AllToAll"),
        ("ncclSymkDevKernel_AllGather_LL", "AllGather"),
        ("multimem_all_reduce_kernel", "AllReduce"),
        ("cross_device_reduce_1stage", "AllReduce"),
        (GENERIC, "Other"),
        ("nccl_preprocess_helper", "Other"),
    ],
)
def test_names(name: str, kind: str) -> None:
    assert KINDS[kind_of(name)] == kind


def domain() -> TraceBuilder:
    return TraceBuilder(schema="3.24.8").nvtx("NCCL", 1, None, domain=NCCL, event_type=75)


def test_a_name_that_says_nothing_goes_by_the_call(tmp_path: Path) -> None:
    """
    thread  [ncclAllGather  launch 1]   [ncclReduce]   launch 2
    """
    trace = domain().kernel(10_000, 20_000, name=GENERIC, launch=(1_100, 1_200))
    trace.nvtx("ncclAllGather", 1_000, 1_300, domain=NCCL, interned=True)
    trace.nvtx("ncclReduce", 1_400, 1_500, domain=NCCL)
    trace.kernel(20_000, 30_000, name=GENERIC, launch=(1_600, 1_700))
    assert kinds(collectives_of(trace, tmp_path)) == ["AllGather", "Other"]


def test_a_group_launches_what_was_called_in_it(tmp_path: Path) -> None:
    """
    thread  [GroupStart][Broadcast][GroupStart][Broadcast][GroupEnd][GroupEnd launch 1]   two of one kind, nested
            [GroupStart][Send][Recv][GroupEnd launch 2]                                   the two halves of one kind
            [GroupStart][AllReduce][AllGather][GroupEnd launch 3]                         two kinds: nobody knows
    """
    trace = domain()
    groups = (
        ("ncclGroupStart", "ncclBroadcast", "ncclGroupStart", "ncclBroadcast", "ncclGroupEnd", "ncclGroupEnd"),
        ("ncclCommCount", "ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"),
        ("ncclGroupStart", "ncclAllReduce", "ncclAllGather", "ncclGroupEnd"),
    )
    for group, names in enumerate(groups, 1):
        last = 0
        for at, name in enumerate(names):
            last = 10_000 * group + 1_000 * at
            trace.nvtx(name, last, last + 900, domain=NCCL)
        trace.kernel(100_000 * group, 100_000 * group + 50_000, name=GENERIC, launch=(last + 100, last + 200))
    assert kinds(collectives_of(trace, tmp_path)) == ["Broadcast", "SendRecv", "Other"]


def payload(communicator: int, *, schema: int = SCHEMA, cut: int | None = None) -> bytes:
    """What nsys keeps of an NCCL call: a header, then the communicator and the size of the message."""
    fields = struct.pack("<Qqq", communicator, 4096, 0)
    return (struct.pack("<IIIIQQ", NCCL, 0, schema, 0, len(fields), 32 + len(fields)) + fields)[:cut]


def with_payload(trace: TraceBuilder, start: int, data: bytes) -> TraceBuilder:
    values = {
        "start": start,
        "end": start + 500,
        "eventType": 59,
        "domainId": NCCL,
        "globalTid": global_tid((4242, 4242)),
    }
    return trace.row("NVTX_EVENTS", {**values, "text": "ncclAllReduce", "binaryData": data})


def test_communicators_by_payload(tmp_path: Path) -> None:
    """Of five calls the first two name theirs; the others have another schema, are cut short, or have no payload."""
    trace = domain().row(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId": NCCL, "schemaId": SCHEMA, "idx": 0, "name": FIELD, "offset": None}
    )
    big = 0xFEDC_BA98_7654_3210
    for at, data in enumerate((payload(17), payload(big), payload(5, schema=9), payload(5, cut=36), b"")):
        with_payload(trace, 10_000 * (at + 1), data)
        start = 10_000 * (at + 1) + 100
        trace.kernel(start + 5_000, start + 6_000, name=GENERIC, launch=(start, start + 100))
    found = collectives_of(trace, tmp_path)
    assert found.communicator.tolist() == [17, big - (1 << 64), 0, 0, 0]
    assert kinds(found) == ["AllReduce"] * 5


def test_without_schemas_no_payload_is_read(tmp_path: Path) -> None:
    trace = with_payload(domain(), 10_000, payload(17))
    trace.kernel(15_000, 16_000, name=GENERIC, launch=(10_100, 10_200))
    assert collectives_of(trace, tmp_path).communicator.tolist() == [0]


def test_calls_that_are_no_collectives_tell_no_kind(tmp_path: Path) -> None:
    """A thread whose only NCCL calls set a communicator up, and a kernel whose name tells nothing."""
    trace = TraceBuilder().kernel(100, 200, name=GENERIC, launch=(50, 60))
    trace.nvtx("NCCL", 1, None, domain=NCCL, event_type=75).nvtx("ncclCommInitRank", 10, 70, domain=NCCL)
    assert kinds(collectives_of(trace, tmp_path)) == ["Other"]
