"""The two sides of a comparison. Which device of one report is which of another, and whether they may be compared; what
each unit of work took on each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import asdict, replace

from nsysdiag import typed
from nsysdiag.arrays.groups import column_from
from nsysdiag.causes import CAUSES
from nsysdiag.comparison.facts import Comparison
from nsysdiag.config.settings import OPTION_OF_SETTING, TIMES, Settings, disabled_causes, setting_text
from nsysdiag.fields import Sentence, SettingValue
from nsysdiag.iterations.facts import IterationsPacked
from nsysdiag.messages import InputError, NotComparableError
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report
from nsysdiag.typed import joined, say

UNNAMED = ("", "GPU")
MOST_FILES = 3
"""Traces without the name of a GPU that a note names; the others are counted. It changes only the length of the
note."""


class DevicePair(Struct, frozen=True):
    """A device in each report before and in each after."""

    before: list[tuple[Report, DeviceReport]]
    after: list[tuple[Report, DeviceReport]]


def require_names(reports: Sequence[Report | WhatIf]) -> None:
    """Raise NotComparableError for a redacted report: numbers that replace names follow the order in one report."""
    if are_redacted(reports):
        raise NotComparableError(
            "a redacted report has numbers instead of names, which differ between reports",
            hint="compare the traces themselves with --redact",
        )


def are_redacted(reports: Sequence[Report | WhatIf]) -> bool:
    """Has any of them pseudonyms for names? Then what its file is called may be a name, too."""
    return any("redacted" in report.settings for report in reports)


def read_from(made: Comparison, *files: Sequence[str | None]) -> Comparison:
    """The comparison with the names of the files that the captures of both sides were read from, if those are not the
    traces themselves; None if not read from a file. A side without files keeps its own."""
    before, after = (
        [
            replace(trace, given=file) if file and file != trace.file else trace
            for trace, file in zip(traces, its or [None] * len(traces), strict=True)
        ]
        for traces, its in zip((made.before, made.after), files, strict=True)
    )
    return replace(made, before=before, after=after)


def paired(
    before: Sequence[Report], after: Sequence[Report], *, across_gpus: bool
) -> tuple[list[DevicePair], list[str]]:
    """The devices that all reports have, and notes on the others. Raises NotComparableError if a report has no device
    that worked, or if GPU models differ without --across-gpus."""
    reports = [*before, *after]
    rows = working_devices(reports)
    matched, notes = in_all(rows), []
    if not matched:  # no key is common if single devices merely have different numbers
        matched = [list(devices) for devices in zip(*rows, strict=False)]
        notes.append("The devices have different numbers; they are compared in order.")
    for at, (report, row) in enumerate(zip(reports, rows, strict=True)):
        taken = [devices[at].key for devices in matched]
        if more := [device.key for device in row if device.key not in taken]:
            notes.append(f"{report.trace.file} has more devices, which are left out: {', '.join(more)}.")
    pairs = []
    for devices in matched:
        each = list(zip(reports, devices, strict=True))
        pairs.append(DevicePair(each[: len(before)], each[len(before) :]))
        notes += _models(pairs[-1], across_gpus=across_gpus)
    return pairs, list(dict.fromkeys(notes))


def working_devices(reports: Sequence[Report]) -> list[list[DeviceReport]]:
    """The devices of each report that did some work. Raises NotComparableError if a report has none."""
    rows = [[device for device in report.devices if device.window_ns] for report in reports]
    for report, devices in zip(reports, rows, strict=True):
        if not devices:
            raise NotComparableError(f"{report.trace.file} has no GPU work to compare")
    return rows


def in_all(rows: Sequence[Sequence[DeviceReport]]) -> list[list[DeviceReport]]:
    """The devices whose keys all reports have, each as the list of it in every report."""
    by_key = [{device.key: device for device in row} for row in rows]
    return [[devices[key] for devices in by_key] for key in by_key[0] if all(key in devices for devices in by_key)]


def _models(pair: DevicePair, *, across_gpus: bool) -> list[str]:
    """The notes on the GPU models of a device. Raises NotComparableError if they differ, unless they may."""
    rows = [*pair.before, *pair.after]
    names = sorted({device.name for _report, device in rows} - set(UNNAMED))
    if len(names) > 1:
        refuse_models(names, across_gpus=across_gpus)
        left, right = (
            " and ".join(
                dict.fromkeys("an unnamed one" if each.name in UNNAMED else each.name for _report, each in side)
            )
            for side in (pair.before, pair.after)
        )
        return [f"The GPUs are of different models: {left} before, {right} after."]
    unnamed = list(dict.fromkeys(report.trace.file for report, device in rows if device.name in UNNAMED))
    if not unnamed:
        return []
    more = [f"{len(unnamed) - MOST_FILES:,} more"] if len(unnamed) > MOST_FILES else []
    which = " and ".join([*unnamed[:MOST_FILES], *more])
    are = "does not name its GPU" if len(unnamed) == 1 else "do not name their GPUs"
    return [f"{which} {are}: it is unknown whether both sides ran on the same model."]


def refuse_models(names: Sequence[str], *, across_gpus: bool) -> None:
    """Raise NotComparableError for several models, unless they may differ."""
    if len(names) > 1 and not across_gpus:
        raise NotComparableError(
            f"the GPUs are of different models: {', '.join(names)}", hint="add --across-gpus to compare them anyway"
        )


CAPTURED = {
    "cuda-api": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "os-runtime": "OSRT_API",
    "scheduling": "SCHED_EVENTS",
    "cpu-samples": "COMPOSITE_EVENTS",
    "gpu-context-switch": "GPU_CONTEXT_SWITCH_EVENTS",
}
"""Evidence that is there or not by how a trace was captured, and its table. Other tables are empty if nothing of
their kind happened."""
WHOLE_GAPS, ROOT = "gap", "root"
"""The sides of causes that take gaps before those of any other side see them, and of those that waits lead to."""


def uncompared(before: Sequence[Report], after: Sequence[Report]) -> tuple[list[str], list[str]]:
    """The causes for which some captures lack evidence, with all later causes on the same side of a gap, which get that
    time instead; and the notes on them."""
    evidence = [
        {each.id for each in report.trace.capabilities if each.available} & CAPTURED.keys()
        for report in (*before, *after)
    ]
    held = evidence[: len(before)], evidence[len(before) :]
    kinds = _differing(evidence)
    tables = {CAPTURED[kind] for kind in kinds}
    disabled = _differing([disabled_causes(report.settings) for report in (*before, *after)])
    first = {cause.id for cause in CAUSES.values() if tables & set(cause.tables)} | set(disabled)
    if disabled:  # a wait that has another name is not followed to its root
        first |= {cause.id for cause in CAUSES.values() if cause.side == ROOT}
    found = _behind(first)
    notes = [
        f"Only {_holders(*held, kind)} {kind} evidence: causes that need it are compared as one." for kind in kinds
    ]
    if disabled:
        notes.append(
            f"The reports were made with different causes disabled: {', '.join(disabled)}, and the causes that get "
            "their time instead, are compared as one."
        )
    return [cause for cause in CAUSES if cause in found], notes


def _differing(held: Sequence[set[str]]) -> list[str]:
    """What some have and others have not."""
    return sorted(set().union(*held) - held[0].intersection(*held))


def _behind(first: set[str]) -> set[str]:
    """These causes, and all that see a gap after one of them."""
    found: set[str] = set()
    whole = False
    for side in dict.fromkeys(cause.side for cause in CAUSES.values()):
        reached = whole
        for cause in (cause for cause in CAUSES.values() if cause.side == side):
            reached = reached or cause.id in first
            found |= {cause.id} if reached else set()
        whole = whole or (reached and side == WHOLE_GAPS)
    return found


def _holders(before: Sequence[set[str]], after: Sequence[set[str]], kind: str) -> str:
    """`the captures before have`, or `some captures have` if those of a side differ."""
    left, right = ([kind in held for held in side] for side in (before, after))
    if all(left) and not any(right):
        return "the captures before have"
    return "the captures after have" if all(right) and not any(left) else "some captures have"


NARROWING = ("start_ns", "end_ns", "nvtx", "iterations")
NO_PART = ("gaps", "full_hash", "timeline", "cost", "config", "redacted", "reference_step_ns", "flops_per_step")
"""What these set is not part of a comparison, or has a note of its own."""


def settings_notes(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """A sentence for each setting that some reports were made with and others not, with its values on both sides."""
    given = sorted({name for report in (*before, *after) for name in report.settings} - {*NO_PART})
    notes = []
    for name in given:
        sides = [[_values(name, report.settings.get(name)) for report in side] for side in (before, after)]
        differing = [
            f"{each} {_shown(sides[0], each)} before, {_shown(sides[1], each)} after".strip()
            for each in sorted({key for side in sides for values in side for key in values})
            if len({values[each] for side in sides for values in side}) > 1
        ]
        if differing:
            option = OPTION_OF_SETTING.get(name, name)
            notes.append(f"The reports were made with different settings, {option}: {'; '.join(differing)}.")
    return notes


def _shown(values: Sequence[dict[str, str]], key: str) -> str:
    return " or ".join(dict.fromkeys(each[key] for each in values))


def _values(name: str, value: SettingValue) -> dict[str, str]:
    """A setting as text under an empty name; of a setting of several numbers each one under its own. Reports hold only
    what differs from the defaults."""
    default = getattr(Settings(), name, None)
    if isinstance(default, Struct):
        given = value if isinstance(value, dict) else {}
        numbers = {key: given.get(key, plain) for key, plain in asdict(default).items()}
        return {key: f"{each:.6g}" if isinstance(each, float) else str(each) for key, each in numbers.items()}
    if value is None:
        return {"": ", ".join(default) if isinstance(default, tuple) and default else "none"}
    text = setting_text(name, value)
    return {"": f"{text} ns" if name in TIMES else "given" if default is False else text}


def window_notes(before: Sequence[Report], after: Sequence[Report]) -> list[Sentence]:
    """A note on windows of different kinds, if no part of the time was chosen."""
    if any(name in report.settings for report in (*before, *after) for name in NARROWING):
        return []
    reasons = sorted(
        {device.window.reason for report in (*before, *after) for device in report.devices}, key=typed.plain
    )
    return [say("The windows follow different rules: {}.", joined("; ", reasons))] if len(reasons) > 1 else []


def capture_notes(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """Captures that are the same trace, and the same time of it: nothing that they have in common is measured twice.
    And a single capture a side."""
    notes = []
    seen: dict[object, str] = {}
    for report in (*before, *after):
        windows = tuple(tuple(map(tuple, device.window.parts)) for device in report.devices)
        what = (report.trace.size_bytes, report.trace.fingerprint, windows)
        if what in seen:
            notes.append(f"{seen[what]} and {report.trace.file} are the same capture, not two measurements.")
        seen.setdefault(what, report.trace.file)
    if len(before) == len(after) == 1:
        notes.append("One capture per side: the interval does not include the variation between runs.")
    return notes


# What each unit of work took: work, causes of idle time, kernels, gaps and operations.

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


def by_iterations(report: Report, device: DeviceReport) -> Capture | None:
    """A capture whose entries are its steady iterations; None if it has none, or a report that does not hold them.
    Raises InputError if the report is damaged."""
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
    """The numbers of operations by kind. If most entries have equally many, a first or last one with fewer is cut:
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
    """A capture of one entry, the judged steady phases of the job, which hold so many units of work. None if it has
    none, if the report does not tell, or if the device did nothing in them. Root causes are known of windows
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
    """Every column for one iteration, idle time among them. Raises ValueError if they are damaged."""

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
