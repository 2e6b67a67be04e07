"""What the page draws of a comparison: bars, and times with their colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.output.bars import LegendEntry, legend_entry
from nsysdiag.output.figures import Segment, percent, stack
from nsysdiag.output.ranks import words
from nsysdiag.output.view import WORK, Causes, by_time, share_of

if TYPE_CHECKING:
    from nsysdiag.model_ranks import RankComparison, RankRow, RankWait, Straggler

MOST_WAITS, MOST_GROUPS, MOST_REASONS = 200, 200, 5
View = dict[str, object]


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
        "ranks": [DrawnRank(row, _parts(row), percent(row.wait_ns, longest)) for row in found.ranks],
        "stragglers": [_straggler(late, causes) for late in found.stragglers],
        "waits": [DrawnWait(wait, _reasons(wait.causes, causes)) for wait in found.waits[:MOST_WAITS]],
        "groups": [(group, words.ranks_label(group.ranks)) for group in found.groups[:MOST_GROUPS]],
    }


def _parts(row: RankRow) -> list[Segment]:
    work = {"compute": row.compute_ns, "exposed_comm": row.exposed_comm_ns, "exposed_copy": row.exposed_copy_ns}
    rows = [(WORK[name][1], ns, None, WORK[name][0]) for name, ns in work.items()]
    return stack([*rows, ("Idle", row.idle_ns, None, "idle")])


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
