"""The tables about the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsysdiag.document.columns import RecordColumn, RecordTable, columns
from nsysdiag.host.facts import HostThread, HostWindow
from nsysdiag.host.words import role

if TYPE_CHECKING:
    from nsysdiag.report import Report


class _Thread(NamedTuple):
    """A thread, and the length of the time that the host is reported for."""

    thread: HostThread
    length_ns: int


def _threads(report: Report) -> list[_Thread]:
    host = report.host
    return [_Thread(thread, host.end_ns - host.start_ns) for thread in host.threads] if host else []


def _fields(names: str) -> tuple[RecordColumn[_Thread], ...]:
    return columns(_Thread, " ".join(f"{name}=thread.{name}" for name in names.split()))


_THREADS = (
    *columns(_Thread, "process_id=thread.pid thread_id=thread.tid thread_name=thread.name process=thread.process"),
    RecordColumn[_Thread]("role", "text", lambda row: role(row.thread)),
    RecordColumn[_Thread](
        "launches", "text", lambda row: ";".join(f"{key}:{count}" for key, count in sorted(row.thread.launches.items()))
    ),
    *_fields("on_cpu_ns off_cpu_ns unknown_ns preempted_ns preemptions on_cpu_estimate_ns"),
    *_fields("switches voluntary involuntary cpus migrations"),
    *columns(_Thread, "worst_stall_ns=thread.worst_stall.ns worst_stall_start_ns=thread.worst_stall.start_ns"),
    *columns(_Thread, "worst_stall_in=thread.worst_stall.what worst_stall_preempted=thread.worst_stall.preempted"),
    *_fields("api_calls sync_calls api_ns sync_ns os_ns"),
    RecordColumn[_Thread](
        "on_cpu_share",
        "number",
        lambda row: None if row.thread.on_cpu_ns is None else row.thread.on_cpu_ns / row.length_ns,
    ),
)
TABLES: tuple[RecordTable[Report, Any], ...] = (
    RecordTable("threads", _THREADS, _threads),
    RecordTable("host_windows", columns(HostWindow), lambda report: report.host.windows if report.host else ()),
)
