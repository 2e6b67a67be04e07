"""One device on one side of a comparison: its captures, each with a table of what each unit of work took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import column_from
from nsysdiag.iterations.facts import IterationsPacked
from nsysdiag.messages import InputError
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.report import DeviceReport, Report

LENGTH = "length"
COMPUTE = "compute"
WORK = (COMPUTE, "exposed_comm", "exposed_copy")
IDLE = "idle"
COPIED = "copied"
FEWEST_WHOLE = 3
"""With fewer entries none is known to be cut."""
STEADY = ("steady", "phase")
"""The bases of a diagnosis that judge steady phases, and neither a start nor a whole window."""
Column = npt.NDArray[np.float64]


class Capture(Struct, frozen=True):
    """One device of one report: `table` holds ns of each entry by column, for a unit of work; `units` is how many units
    of work its window holds, `fold` how many are in an iteration, `entries` how many iterations it has."""

    report: Report
    device: DeviceReport
    table: dict[str, Column]
    units: float
    entries: int
    fold: float = 1.0


class Quantity(Struct, frozen=True):
    """A time of both sides that is not work or a cause, but of a kernel or of gaps: for each capture the columns that
    add up to it, none if the capture lacks it."""

    before: list[list[str]]
    after: list[list[str]]


def holds(rows: Sequence[list[str]], captures: Sequence[Capture], *, complete: Sequence[bool]) -> bool:
    """Do all captures hold these columns for each unit of work? A capture without columns has nothing of it, provided
    that its list of rows is `complete`."""
    return all(
        whole if not names else all(name in capture.table for name in names)
        for names, capture, whole in zip(rows, captures, complete, strict=True)
    )


def by_iterations(report: Report, device: DeviceReport) -> Capture | None:
    """A capture whose entries are its steady iterations; None where it has none, or a report that does not hold them.
    Raises InputError where the report is damaged."""
    packed = device.iterations.packed if device.iterations is not None else None
    if packed is None or not packed.count:
        return None
    try:
        table = _table(packed)
    except ValueError as error:
        raise InputError(f"the iterations of {report.trace.file} cannot be read: the report is damaged") from error
    ops = sum(float(column.mean()) for column in _operations(table).values())
    ran = device.ops.kernel + device.ops.memcpy + device.ops.memset + device.ops.graph
    units = ran / ops if ops else float(packed.count * packed.each)
    return Capture(report, device, table, units, packed.count * packed.each)


def mean_operations(captures: Sequence[Capture], kind: str) -> float:
    """How many operations of a kind are in a unit of work, without entries that the trace cut."""
    whole = [_operations(each.table).get(f"ops.{kind}", np.zeros(1)) for each in captures]
    return float(np.concatenate(whole).mean())


def _operations(table: Mapping[str, Column]) -> dict[str, Column]:
    """The numbers of operations by kind. Where most entries have equally many, a first or last one with fewer is cut:
    it lost some to its neighbour, or to the end of the trace."""
    found = {name: values for name, values in table.items() if name.startswith("ops.")}
    count = sum(found.values(), start=np.zeros(1))
    usual = float(np.median(count))
    if len(count) < FEWEST_WHOLE or 2 * int((count == usual).sum()) < len(count):
        return found
    whole = slice(int(count[0] < usual), len(count) - int(count[-1] < usual))
    return {name: values[whole] for name, values in found.items()}


def by_window(report: Report, device: DeviceReport, units: float) -> Capture:
    """A capture of one entry, its whole window, which holds so many units of work."""
    table = {
        LENGTH: device.window_ns,
        "compute": device.compute_ns,
        "exposed_comm": device.exposed_comm_ns,
        "exposed_copy": device.exposed_copy_ns,
        IDLE: device.idle_ns,
        **{f"ledger.{cause}": ns for cause, ns in device.ledger.items()},
        **{f"root.{cause}": ns for cause, ns in device.root_ledger.items()},
        **{f"kernel.{number}": row.total_ns for number, row in enumerate(device.kernels)},
        **{f"signature.{number}": row.total_ns for number, row in enumerate(device.signatures)},
        **{f"ops.{kind}": getattr(device.ops, kind) for kind in ("kernel", "memcpy", "memset", "graph")},
    }
    return Capture(report, device, {name: np.array([ns / units]) for name, ns in table.items()}, units, 1)


def by_phase(report: Report, device: DeviceReport, units: float) -> Capture | None:
    """A capture of one entry, the judged steady phases of the job, which hold so many units of work. None where it has
    none, where the report does not tell, or where the device did nothing in them. Root causes are known of windows
    alone: here each cause stands for itself."""
    if report.diagnosis is None or report.diagnosis.basis not in STEADY:
        return None
    found = judged_phases(report, device)
    ledger = {cause: sum(each.ledger.get(cause, 0) for each in found) for each in found for cause in each.ledger}
    parts = {name: sum(getattr(each, f"{name}_ns") for each in found) for name in (*WORK, IDLE)}
    if not sum(parts.values()):
        return None
    table = {
        LENGTH: sum(parts.values()),
        **parts,
        **{f"ledger.{cause}": ns for cause, ns in ledger.items()},
        **{f"root.{cause}": ns for cause, ns in ledger.items()},
    }
    return Capture(report, device, {name: np.array([ns / units]) for name, ns in table.items()}, units, 1)


def judged_phases(report: Report, device: DeviceReport) -> list[PhaseDevice]:
    """The device in each judged steady phase of the job."""
    return [each for phase in report.phases if phase.judged for each in phase.devices if each.key == device.key]


def column(captures: Sequence[Capture], name: str) -> list[Column]:
    """A column of each capture; a cause that a capture does not name took no time there."""
    return [capture.table.get(name, np.zeros(len(capture.table[LENGTH]))) for capture in captures]


def total(captures: Sequence[Capture], name: str) -> float:
    """The sum of a column over all captures."""
    return sum(float(values.sum()) for values in column(captures, name))


def mean_count(captures: Sequence[Capture], counts: Sequence[float]) -> float:
    """What all captures counted in their windows, for a unit of work."""
    return sum(counts) / max(sum(capture.units for capture in captures), 1e-9)


def scaled(capture: Capture, scale: float) -> Capture:
    """The capture in other units: `scale` of them make one of its own."""
    if scale == 1.0:
        return capture
    table = {name: values / scale for name, values in capture.table.items()}
    return replace(capture, table=table, units=capture.units * scale, fold=capture.fold * scale)


def _table(packed: IterationsPacked) -> dict[str, Column]:
    """Every column for one iteration, idle time among them. Raises ValueError where they are damaged."""

    def read(text: str) -> Column:
        values = column_from(text, packed.count).astype(np.float64) / packed.each
        return np.asarray(values, dtype=np.float64)

    lengths = read(packed.lengths)
    zero = np.zeros(len(lengths))
    ledger = {f"ledger.{cause}": read(text) for cause, text in packed.ledger.items()}
    return {
        LENGTH: lengths,
        **dict.fromkeys(WORK, zero),
        **{name: read(text) for name, text in packed.work.items()},
        IDLE: sum(ledger.values(), start=zero),
        **ledger,
        **{f"root.{cause}": read(text) for cause, text in packed.root_ledger.items()},
        **{f"ops.{kind}": read(text) for kind, text in packed.ops.items()},
        **({COPIED: read(packed.copied)} if packed.copied else {}),
        **{f"kernel.{number}": read(text) for number, text in enumerate(packed.kernels)},
        **{f"signature.{number}": read(text) for number, text in enumerate(packed.signatures)},
    }
