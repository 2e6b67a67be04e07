"""What the page draws of a comparison: bars, and times with their colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.bars import LegendEntry, legend_entry
from nsysdiag.document.figures import Segment, percent, stack
from nsysdiag.document.view import WORK, Causes, by_time, share_of
from nsysdiag.ranks.show import words

if TYPE_CHECKING:
    from nsysdiag.ranks.facts import RankComparison, RankRow, RankWait, Straggler

MOST_WAITS, MOST_GROUPS, MOST_REASONS = 50, 50, 5
View = dict[str, object]
PARTS = {**WORK, "idle": ("idle", "Idle")}


@dataclass(frozen=True, slots=True)
class Reason:
    """Some time by work or cause, with its colour."""

    entry: LegendEntry
    ns: int


@dataclass(frozen=True, slots=True)
class DrawnRank:
    """A rank with its bar, and how long it waited against the one that waited most."""

    row: RankRow
    parts: list[Segment]
    waited: str


@dataclass(frozen=True, slots=True)
class DrawnStraggler:
    """A rank that was late, and why."""

    late: Straggler
    sentence: str
    parts: list[Segment]
    more: list[Reason]
    meanwhile: list[Reason]


@dataclass(frozen=True, slots=True)
class DrawnWait:
    """What one rank waited for another."""

    wait: RankWait
    reasons: list[Reason]


def ranks_view(found: RankComparison, causes: Causes) -> View:
    """The values for `templates/sections/ranks.html`."""
    longest = max((row.wait_ns for row in found.ranks), default=0)
    return {
        "found": found,
        "facts": [words.basis_sentence(found), words.imbalance_sentence(found), words.clock_sentence(found)],
        "legend": [LegendEntry(label, part, "") for part, label in PARTS.values()],
        "ranks": [DrawnRank(row, _parts(row), percent(row.wait_ns, longest)) for row in found.ranks],
        "stragglers": [_straggler(late, causes) for late in found.stragglers],
        "waits": [DrawnWait(wait, _reasons(wait.causes, causes)) for wait in found.waits[:MOST_WAITS]],
        "groups": [(group, words.ranks_label(group.ranks)) for group in found.groups[:MOST_GROUPS]],
    }


def _parts(row: RankRow) -> list[Segment]:
    times = (row.compute_ns, row.exposed_comm_ns, row.exposed_copy_ns, row.idle_ns)
    return stack((label, ns, None, part) for (part, label), ns in zip(PARTS.values(), times, strict=True))


def _straggler(late: Straggler, causes: Causes) -> DrawnStraggler:
    shares = [share_of(name, ns, causes) for name, ns in by_time(late.more or late.meanwhile)]
    return DrawnStraggler(
        late=late,
        sentence=words.straggler_sentence(late),
        parts=stack((share.label, share.ns, share.color or None, share.part) for share in shares),
        more=_reasons(late.more, causes),
        meanwhile=_reasons(late.meanwhile, causes),
    )


def _reasons(times: dict[str, int], causes: Causes) -> list[Reason]:
    return [Reason(legend_entry(share_of(name, ns, causes)), ns) for name, ns in by_time(times)[:MOST_REASONS]]
