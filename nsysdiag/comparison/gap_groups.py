"""Gaps at one place of the program, before and after: whether they are there, and by which cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from msgspec import Struct

from nsysdiag.comparison.facts import Change, SignatureChange
from nsysdiag.comparison.matching import UNSEEN_AFTER, UNSEEN_BEFORE, seen_status, unjudged
from nsysdiag.comparison.pairing import NOT_COMPARED
from nsysdiag.comparison.side import Capture, Quantity, holds
from nsysdiag.gap_groups.groups import MOST
from nsysdiag.report import SignatureRow

RECAUSED = "recaused"
MOST_GROUPS = 60
Place = tuple[str, str, tuple[str, ...]]
"""Where in the program: between the same operations, in the same NVTX range."""


class _GapKind(Struct):
    """A gap group with one cause: its row, its count and ns per unit of work, and its columns in each capture of the
    side."""

    row: SignatureRow
    columns: list[list[str]]
    count: float = 0.0
    ns: float = 0.0


Kinds = dict[str, _GapKind]
"""By largest cause."""


class GapGroupTable(Struct, frozen=True):
    """The gaps of a side by place, over all its captures; causes that are compared as one are one."""

    captures: Sequence[Capture]
    places: dict[Place, Kinds]

    def columns(self, place: Place, cause: str | None) -> list[list[str]] | None:
        """The columns of the gaps of a cause in each capture; None if their time per unit of work is unknown, as the
        list of a report may be cut."""
        kind = self.places.get(place, {}).get(cause or "")
        columns = kind.columns if kind else [[] for _capture in self.captures]
        complete = [len(capture.device.signatures) < MOST for capture in self.captures]
        return columns if holds(columns, self.captures, complete=complete) else None


class _GapPair(Struct, frozen=True):
    """Gaps at a place by their cause before and their cause after, None where a side has none."""

    place: Place
    before: str | None
    after: str | None


def gaps_of(captures: Sequence[Capture], pooled: Collection[str]) -> GapGroupTable:
    """The gaps of a side; causes in `pooled` are one."""
    found: dict[Place, Kinds] = defaultdict(dict)
    for number, capture in enumerate(captures):
        for at, row in enumerate(capture.device.signatures):
            cause = NOT_COMPARED if row.cause in pooled else row.cause
            place = row.previous_op, row.next_op, tuple(row.nvtx)
            kind = found[place].setdefault(cause, _GapKind(row, [[] for _capture in captures]))
            kind.columns[number].append(f"signature.{at}")
            kind.count += row.count / capture.units / len(captures)
            kind.ns += _ns(capture, row) / len(captures)
    return GapGroupTable(captures, dict(found))


def _ns(capture: Capture, row: SignatureRow) -> float:
    """Its time for a unit of work: in the steady iterations where there are some."""
    if row.per_iteration_ns is None or capture.entries == 1:
        return row.total_ns / capture.units
    return row.per_iteration_ns / capture.fold


def gap_times(before: GapGroupTable, after: GapGroupTable) -> dict[Hashable, Quantity]:
    """The gaps whose times are known for each unit of work."""
    found: dict[Hashable, Quantity] = {}
    for pair in _pairs(before, after):
        one, two = before.columns(pair.place, pair.before), after.columns(pair.place, pair.after)
        if one is not None and two is not None:
            found[pair] = Quantity(one, two)
    return found


def gap_group_changes(
    before: GapGroupTable, after: GapGroupTable, known: Mapping[Hashable, Change], plain: Callable[[int, int], Change]
) -> list[SignatureChange]:
    """Gaps by place, those whose time changed most first. At each place the causes of both sides that have no like on
    the other one are one that was recaused. Of `known` ones the interval is known, the change of others is made
    by `plain`."""
    found = []
    for pair in _pairs(before, after):
        one = before.places.get(pair.place, {}).get(pair.before or "")
        two = after.places.get(pair.place, {}).get(pair.after or "")
        shown = two or one
        assert shown is not None
        seen = seen_status(before.captures, after.captures, one, two)
        change = known.get(pair) or plain(round(one.ns) if one else 0, round(two.ns) if two else 0)
        other_cause = one is not None and two is not None and pair.before != pair.after
        found.append(
            SignatureChange(
                id=shown.row.id,
                status=RECAUSED if other_cause else seen,
                previous_op=pair.place[0],
                next_op=pair.place[1],
                nvtx=list(pair.place[2]),
                cause_before=pair.before,
                cause_after=pair.after,
                count_before=round(one.count, 3) if one else 0.0,
                count_after=round(two.count, 3) if two else 0.0,
                change=unjudged(change) if seen in (UNSEEN_BEFORE, UNSEEN_AFTER) else change,
            )
        )
    found.sort(key=lambda row: (-abs(row.change.change_ns), -row.change.before_ns, row.id))
    return found[:MOST_GROUPS]


def _pairs(before: GapGroupTable, after: GapGroupTable) -> list[_GapPair]:
    return [
        _GapPair(place, *causes)
        for place in dict.fromkeys([*before.places, *after.places])
        for causes in _by_cause(before.places.get(place, {}), after.places.get(place, {}))
    ]


def _by_cause(left: Kinds, right: Kinds) -> list[tuple[str | None, str | None]]:
    """Which cause before is which after: the same one, or the largest of those that are left."""
    same: list[tuple[str | None, str | None]] = [(cause, cause) for cause in left if cause in right]
    gone = sorted((cause for cause in left if cause not in right), key=lambda cause: (-left[cause].ns, cause))
    came = sorted((cause for cause in right if cause not in left), key=lambda cause: (-right[cause].ns, cause))
    same += zip(gone, came, strict=False)
    same += [(cause, None) for cause in gone[len(came) :]]
    return same + [(None, cause) for cause in came[len(gone) :]]


def cut_notes(captures: Sequence[Capture]) -> list[str]:
    """The note if a report had more gap groups than it keeps."""
    if all(len(capture.device.signatures) < MOST for capture in captures):
        return []
    return [
        f"A report keeps the {MOST} gap groups with most idle time. A new or missing group may be below them on the "
        "other side."
    ]


def recaused(before: GapGroupTable, after: GapGroupTable) -> dict[tuple[str, str], float]:
    """How much time of gaps at one place of the program changed from one largest cause to another, for a unit of
    work."""
    left, right = before.places, after.places
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
