"""Gaps at one place of the program, before and after: whether they are there, and by which cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nsysdiag.analysis.signatures import MOST
from nsysdiag.comparing.evidence import NOT_COMPARED
from nsysdiag.comparing.matching import status
from nsysdiag.comparing.side import Capture
from nsysdiag.model import SignatureRow
from nsysdiag.model_compare import SignatureChange

RECAUSED = "recaused"
MOST_SIGNATURES = 60
Place = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Gaps of one cause at a place: a row of them, and count and ns for a unit of work."""

    row: SignatureRow
    count: float
    ns: float


Kinds = dict[str, _Kind]
"""By largest cause."""


def _place(row: SignatureRow) -> Place:
    """Where in the program: between the same operations, in the same NVTX range."""
    return row.previous_op, row.next_op, tuple(row.nvtx)


def _ns(capture: Capture, row: SignatureRow) -> float:
    """Its time for a unit of work: in the steady iterations where there are some."""
    if row.per_iteration_ns is None or capture.entries == 1:
        return row.total_ns / capture.units
    return row.per_iteration_ns / capture.fold


def _by_place(captures: Sequence[Capture], pooled: Collection[str]) -> dict[Place, Kinds]:
    """Over all captures of a side; causes in `pooled` are one."""
    found: dict[Place, Kinds] = defaultdict(dict)
    for capture in captures:
        for row in capture.device.signatures:
            here = found[_place(row)]
            cause = NOT_COMPARED if row.cause in pooled else row.cause
            known = here.get(cause, _Kind(row, 0.0, 0.0))
            count = known.count + row.count / capture.units / len(captures)
            here[cause] = _Kind(known.row, count, known.ns + _ns(capture, row) / len(captures))
    return dict(found)


def signature_changes(
    before: Sequence[Capture], after: Sequence[Capture], pooled: Collection[str] = ()
) -> list[SignatureChange]:
    """Gaps by place, those whose time changed most first. At each place the causes of both sides that have no like on
    the other one are told as one that was recaused."""
    left, right = _by_place(before, pooled), _by_place(after, pooled)
    found: list[SignatureChange] = []
    for place in dict.fromkeys([*left, *right]):
        one, two = left.get(place, {}), right.get(place, {})
        found += [_change(place, a, one.get(a or ""), b, two.get(b or "")) for a, b in _pairs(one, two)]
    found.sort(key=lambda row: (-abs(row.after_ns - row.before_ns), -row.before_ns, row.id))
    return found[:MOST_SIGNATURES]


def _pairs(left: Kinds, right: Kinds) -> list[tuple[str | None, str | None]]:
    """Which cause before is which after: the same one, or the largest of those that are left."""
    same: list[tuple[str | None, str | None]] = [(cause, cause) for cause in left if cause in right]
    gone = sorted((cause for cause in left if cause not in right), key=lambda cause: (-left[cause].ns, cause))
    came = sorted((cause for cause in right if cause not in left), key=lambda cause: (-right[cause].ns, cause))
    same += zip(gone, came, strict=False)
    same += [(cause, None) for cause in gone[len(came) :]]
    return same + [(None, cause) for cause in came[len(gone) :]]


def _change(
    place: Place, cause_before: str | None, before: _Kind | None, cause_after: str | None, after: _Kind | None
) -> SignatureChange:
    shown = after or before
    assert shown is not None
    other = before is not None and after is not None and cause_before != cause_after
    return SignatureChange(
        id=shown.row.id,
        status=RECAUSED if other else status(before, after),
        previous_op=place[0],
        next_op=place[1],
        nvtx=list(place[2]),
        cause_before=cause_before,
        cause_after=cause_after,
        count_before=round(before.count, 3) if before else 0.0,
        count_after=round(after.count, 3) if after else 0.0,
        before_ns=round(before.ns) if before else 0,
        after_ns=round(after.ns) if after else 0,
    )


def cut_notes(captures: Sequence[Capture]) -> list[str]:
    """What is to be said where a report had more kinds of gaps than it keeps."""
    if all(len(capture.device.signatures) < MOST for capture in captures):
        return []
    return [
        f"A report keeps the {MOST} kinds of recurring gaps with most idle time: one that is new or gone may lie below "
        "them on the other side."
    ]


def recaused(
    before: Sequence[Capture], after: Sequence[Capture], pooled: Collection[str] = ()
) -> dict[tuple[str, str], float]:
    """How much time of gaps at one place of the program changed from one largest cause to another, for a unit of
    work."""
    left, right = _by_place(before, pooled), _by_place(after, pooled)
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for place in [each for each in left if each in right]:  # in order: sums of fractions depend on it
        lost, won = _less(left[place], right[place]), _less(right[place], left[place])
        most = max(sum(lost.values()), sum(won.values()))
        for one, gone in lost.items():
            for two, came in won.items():
                found[one, two] += gone * came / most
    return dict(sorted(found.items()))


def _less(kinds: Kinds, other: Kinds) -> dict[str, float]:
    """By how much each has more time here than on the other side, of those that do."""
    less = {cause: kind.ns - (other[cause].ns if cause in other else 0.0) for cause, kind in sorted(kinds.items())}
    return {cause: ns for cause, ns in less.items() if ns > 0}
