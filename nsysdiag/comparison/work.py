"""How much work a step has before and after: kernels, launches, bytes copied. A step with more work takes longer, and
nothing has become slower."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.comparison.changes import DECIDED
from nsysdiag.comparison.facts import Change, WorkChange
from nsysdiag.comparison.side import COPIED, Capture, column, mean_count, total
from nsysdiag.comparison.units import ITERATIONS, Sides

KERNELS, LAUNCHES, BYTES = "kernels", "launches", "bytes"
LEAST = 0.1
"""The change from which a step has different work. Smaller batches at the end of an epoch, or kernels chosen by size,
change less; another batch size, sequence length or number of layers changes more."""


def work_changes(sides: Sides) -> list[WorkChange]:
    """The work of a step on both sides; none where other units are compared, which are made by the work in them.
    Kernels are left out where graphs were recorded as wholes, bytes where a report does not hold them step by step."""
    if sides.unit.kind != ITERATIONS:
        return []
    both = (sides.before, sides.after)
    found = []
    if not any(total(side, "ops.graph") for side in both) and any(total(side, "ops.kernel") for side in both):
        found.append(_change(KERNELS, _median(sides.before, "ops.kernel"), _median(sides.after, "ops.kernel")))
    calls = [mean_count(side, [each.device.launch.calls for each in side]) for side in both]
    if any(calls):
        found.append(WorkChange(id=LAUNCHES, before=round(calls[0], 3), after=round(calls[1], 3), differs=False))
    if copied := _copied(sides):
        found.append(copied)
    return found


def _copied(sides: Sides) -> WorkChange | None:
    """The bytes of a step. A host that runs ahead copies for several later steps at once, so a median step may have no
    copy: then the bytes of a step are unknown. Whole windows, which include start-up, must also differ in bytes."""
    both = (sides.before, sides.after)
    steps = [_median(side, COPIED) for side in both]
    windows = []
    for side in both:
        rows = [row for each in side for row in each.device.copies.rows if row.operation != "memset"]
        windows.append(mean_count(side, [row.bytes for row in rows]))
    if not any(steps) or any(not step and window for step, window in zip(steps, windows, strict=True)):
        return None
    found, whole = _change(BYTES, *steps), _change(BYTES, *windows)
    agree = whole.differs and (whole.after > whole.before) == (found.after > found.before)
    return replace(found, differs=found.differs and agree)


def goes_with(work: Sequence[WorkChange], length: Change) -> bool:
    """Is the time longer where the work is more, or shorter where it is less? Then the time alone tells nothing."""
    signs = {np.sign(row.after - row.before) for row in work if row.differs}
    return length.verdict in DECIDED and float(np.sign(length.change_ns)) in signs


def _change(id: str, before: float, after: float) -> WorkChange:
    differs = abs(after - before) > LEAST * min(before, after)
    return WorkChange(id=id, before=round(before, 3), after=round(after, 3), differs=differs)


def _median(side: Sequence[Capture], name: str) -> float:
    return float(np.median(np.concatenate(column(side, name))))
