"""What exports have since nsys 2026.4 (schema 3.28): a trace of each."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from nsysdiag.document.view import Causes
from nsysdiag.launches.words import launch_sentences
from tests.builder import MAIN, TraceBuilder, global_pid, global_tid

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport

STEPS, MS = 10, 1_000_000
CALLBACKS = (MAIN[0], 77)


def device_of(trace: TraceBuilder, folder: Path) -> DeviceReport:
    (device,) = analyze(trace.write(folder / "trace.sqlite")).devices
    return device


def test_rows_of_a_jit_compiler_are_loading(tmp_path: Path) -> None:
    """The gap before each kernel is that of its launch, in which a compiler runs."""
    trace = TraceBuilder(schema="3.28.1")
    for at in range(1, STEPS + 1):
        start = at * 10 * MS
        trace.kernel(start, start + MS, name="gemm", launch=(start - 6 * MS, start - 10_000))
        compiled = {"start": start - 5 * MS, "end": start - MS, "globalTid": global_tid(MAIN), "overheadType": 2}
        trace.row("CUPTI_ACTIVITY_KIND_JIT", {**compiled, "nameId": trace.string("ptxas")})
    assert device_of(trace, tmp_path).ledger["module_load"] == pytest.approx((STEPS - 1) * 4 * MS, rel=0.01)


def test_callbacks_tell_who_ran_a_host_function_and_for_how_long(tmp_path: Path) -> None:
    trace = TraceBuilder(schema="3.28.1")
    for at in range(1, STEPS + 1):
        start = at * 10 * MS
        trace.kernel(start, start + MS, name="gemm", launch=(start - 20_000, start - 10_000))
        trace.host_function(start + MS, start + 3 * MS, correlation=1_000 + at)
        ran = {"start": start + MS + 100_000, "end": start + 3 * MS - 400_000, "correlationId": 1_000 + at}
        trace.row("CUDA_HOST_CALLBACK", {**ran, "globalTid": global_tid(CALLBACKS), "nameId": trace.string("notify")})
        trace.kernel(start + 3 * MS + 2_000, start + 4 * MS, name="norm", launch=(start - 5_000, start - 1_000))
    device = device_of(trace, tmp_path)
    functions = device.launch.functions
    assert functions is not None
    assert (functions.count, functions.held_ns) == (STEPS, STEPS * 2 * MS)
    assert [(row.tid, row.count, row.ran_ns) for row in functions.threads] == [(77, STEPS, STEPS * 1_500_000)]
    said = "10 host functions held streams for 20.0 ms; thread 77 of the driver ran them, for 15.0 ms."
    assert said in launch_sentences(device, Causes([]))


def test_a_row_of_a_batch_stands_for_its_copies(tmp_path: Path) -> None:
    trace = TraceBuilder(schema="3.28.1")
    for at in range(1, STEPS + 1):
        start = at * MS
        trace.kernel(start, start + 400_000, name="gemm", launch=(start - 20_000, start - 10_000))
        trace.memcpy(start + 500_000, start + 600_000, size=1 << 20, launch=(start + 450_000, start + 460_000))
    path = trace.write(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyCount = 16")
    (row,) = analyze(path).devices[0].copies.rows
    assert (row.count, row.copies) == (STEPS, 16 * STEPS)


def test_decompression_counts_its_operations(tmp_path: Path) -> None:
    trace = TraceBuilder(schema="3.28.1")
    place = {"deviceId": 0, "contextId": 1, "streamId": 9, "globalPid": global_pid(MAIN[0]), "correlationId": 0}
    for at in range(1, STEPS + 1):
        start = at * MS
        trace.kernel(start, start + 400_000, name="gemm", launch=(start - 20_000, start - 10_000))
        work = {"start": start + 500_000, "end": start + 700_000, "sourceBytes": 4096, "NumberOfOperations": 3}
        trace.row("CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS", {**place, **work})
    device = device_of(trace, tmp_path)
    (row,) = device.copies.rows
    assert (row.operation, row.count, row.copies, row.bytes) == ("memory decompression", STEPS, 3 * STEPS, STEPS * 4096)
    assert device.busy_ns == STEPS * 600_000


FIELDS = {"NCCL communicator ID": 1234, "Message size [bytes]": 1 << 20, "No. of ranks": 8}
SANITIZED = {"NCCL communicator ID": "commId", "Message size [bytes]": "msgSize", "No. of ranks": "ranks"}

PLAIN = {
    "NCCL communicator ID": "NCCL_communicator_ID",
    "Message size [bytes]": "Message_size_bytes",
    "No. of ranks": "No_of_ranks",
}


@pytest.mark.parametrize("translated", [True, False])
def test_tables_of_payloads_are_read_as_payloads_are(tmp_path: Path, *, translated: bool) -> None:
    trace = TraceBuilder(schema="3.28.1")
    trace.nvtx("NCCL", 0, None, domain=3, event_type=75)
    for at in range(STEPS + 1):
        start = (at + 1) * MS
        call = "ncclAllReduce" if at else "ncclCommInitRank"
        trace.nvtx(call, start - 30_000, start - 5_000, domain=3, event_type=70)
        if at:
            trace.kernel(
                start, start + 400_000, name="ncclDevKernel_AllReduce_Sum_f32", launch=(start - 20_000, start - 10_000)
            )
    path = trace.write(tmp_path / "trace.sqlite")
    names = SANITIZED if translated else {"NCCL communicator ID": "NCCL_communicator_ID"}
    names = {
        name: names.get(name, "_".join("".join(c if c.isalnum() else " " for c in name).split())) for name in FIELDS
    }
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE NVTX_EVENTS SET eventId = rowid + 100")
        if translated:
            connection.execute("CREATE TABLE NVTX_EXPORT_TRANSLATION (originalName TEXT, sanitizedName TEXT)")
            connection.executemany("INSERT INTO NVTX_EXPORT_TRANSLATION VALUES (?, ?)", names.items())
        for schema, call, fields in (
            (9, "ncclAllReduce", ("NCCL communicator ID", "Message size [bytes]")),
            (8, "ncclCommInitRank", ("NCCL communicator ID", "No. of ranks")),
        ):
            table = f"DYNAMIC_NVTXPAYLOAD_DATATYPE_{global_pid(MAIN[0])}_3_{schema}"
            columns = ", ".join(f"{names[each]} INT" for each in fields)
            connection.execute(f"CREATE TABLE {table} (eventId INT, {columns})")
            values = ", ".join(str(FIELDS[each]) for each in fields)
            connection.execute(
                f"INSERT INTO {table} SELECT eventId, {values} FROM NVTX_EVENTS WHERE text = '{call}' OR textId = "
                f"(SELECT id FROM StringIds WHERE value = '{call}')"
            )
    report = analyze(path)
    (kind,) = report.devices[0].communication.kinds
    assert (kind.kind, kind.sized, kind.count) == ("AllReduce", STEPS, STEPS)
    assert not [text for text in report.trace.warnings if "not read" in text]


def test_floors_are_those_of_the_trace(tmp_path: Path) -> None:
    """Kernels that the hardware traced follow each other after 300 ns: no time between them is charged to anything."""
    trace = TraceBuilder(schema="3.28.1")
    for at in range(400):
        start = MS + at * 100_300
        trace.kernel(start, start + 100_000, name="gemm", launch=(100_000 + at * 2_000, 101_000 + at * 2_000))
    device = device_of(trace, tmp_path)
    assert device.floor_calibrated
    assert device.floor_ns == 2_000
    assert set(device.ledger) <= {"dispatch"}


def test_traces_of_blocks_and_warps_are_named_as_not_read(tmp_path: Path) -> None:
    trace = TraceBuilder(schema="3.28.1")
    for at in range(1, STEPS + 1):
        trace.kernel(at * MS, at * MS + 600_000, name="gemm", launch=(at * MS - 20_000, at * MS - 10_000))
    path = trace.write(tmp_path / "trace.sqlite")
    tables = ("BLOCK_TRACE", "BLOCK_PHASE_TRACE", "WARP_TRACE")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in tables:
            connection.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_{table} (start INT, end INT, deviceId INT)")
            connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES (1, 900, 0)")
    (warning,) = [text for text in analyze(path).trace.warnings if "not read" in text]
    assert warning.startswith("3 tables of events are not read: ")
