"""The tables of a comparison as plain values, for data frames: times are ns for a unit of work, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nsysdiag.comparison.facts import (
    AccountChange,
    CollectiveChange,
    Comparison,
    CopyChange,
    CountChange,
    DeviceComparison,
    FindingChange,
    KernelChange,
    MetricChange,
    Move,
    PartChange,
    SideTrace,
    SignatureChange,
    Step,
    WorkChange,
)
from nsysdiag.document.columns import RecordColumn, RecordTable, columns, of_devices
from nsysdiag.document.words import path_label

if TYPE_CHECKING:
    from collections.abc import Callable


class _TraceRow(NamedTuple):
    """A capture with its side."""

    side: str
    trace: SideTrace


def _of(
    name: str, shown: tuple[RecordColumn[Any], ...], rows: Callable[[DeviceComparison], Iterable[Any]]
) -> RecordTable[Comparison, Any]:
    """A table of all devices of a comparison, with the keys of devices as in a report."""
    return cast("RecordTable[Comparison, Any]", of_devices(name, shown, cast("Any", rows)))


def _change(field: str, prefix: str = "") -> str:
    """The columns of a change in this field."""
    names = ["before_ns", "after_ns", "change_ns", "low_ns", "high_ns", "least_ns", "verdict"]
    return " ".join(f"{prefix}{name}={field}.{name}" for name in names)


def _traces(comparison: Comparison) -> Iterator[_TraceRow]:
    for side, traces in (("before", comparison.before), ("after", comparison.after)):
        yield from (_TraceRow(side, trace) for trace in traces)


_DEVICES = """
    name_before name_after verdict unit=unit.kind units_before=unit.count_before units_after=unit.count_after
    scale=unit.scale noise slow_steps
"""
_KERNELS = """
    name short_name communication status count_before count_after mean_before_ns mean_after_ns
"""
_METRICS = (
    *columns(MetricChange, "metric=id title unit"),
    RecordColumn[MetricChange]("before", "number", lambda row: row.before),
    RecordColumn[MetricChange]("after", "number", lambda row: row.after),
)
_SIGNATURES = (
    *columns(SignatureChange, "id status previous_op next_op"),
    RecordColumn[SignatureChange]("nvtx", "text", lambda row: path_label(row.nvtx)),
    *columns(SignatureChange, f"cause_before cause_after count_before count_after {_change('change')}"),
)
_TABLES: tuple[RecordTable[Comparison, Any], ...] = (
    _of(
        "devices",
        columns(DeviceComparison, f"{_DEVICES} {_change('length', 'length_')} {_change('step', 'step_')}"),
        lambda device: [device],
    ),
    _of("parts", columns(PartChange, f"part=id {_change('change')}"), lambda device: device.parts),
    _of("ledger", columns(PartChange, f"cause=id {_change('change')}"), lambda device: device.ledger),
    _of("root_ledger", columns(PartChange, f"cause=id {_change('change')}"), lambda device: device.root_ledger),
    _of("waterfall", columns(Step, "step=id change_ns"), lambda device: device.waterfall),
    _of("moves", columns(Move, "cause_before=before cause_after=after ns seen_ns"), lambda device: device.moves),
    _of("workload", columns(CountChange, "kind=id before after changed"), lambda device: device.workload),
    _of("kernels", columns(KernelChange, f"{_KERNELS} {_change('change')}"), lambda device: device.kernels),
    _of("signatures", _SIGNATURES, lambda device: device.signatures),
    _of("copies", columns(CopyChange), lambda device: device.copies),
    _of("collectives", columns(CollectiveChange), lambda device: device.communication),
    _of("metrics", _METRICS, lambda device: [*device.launch, *device.utilization]),
    _of("findings", columns(FindingChange), lambda device: device.findings),
    RecordTable("account", columns(AccountChange), lambda found: found.job.account if found.job else ()),
    RecordTable(
        "work",
        (
            *columns(WorkChange, "work=id"),
            RecordColumn[WorkChange]("before", "number", lambda row: row.before),
            RecordColumn[WorkChange]("after", "number", lambda row: row.after),
            *columns(WorkChange, "differs"),
        ),
        lambda found: found.job.work if found.job else (),
    ),
    RecordTable(
        "traces",
        columns(
            _TraceRow,
            """
            side file=trace.file given=trace.given prediction=trace.prediction size_bytes=trace.size_bytes
            fingerprint=trace.fingerprint nsys_version=trace.nsys_version
            """,
        ),
        _traces,
    ),
)
BY_NAME = {table.name: table for table in _TABLES}
