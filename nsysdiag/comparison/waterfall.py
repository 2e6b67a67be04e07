"""The way from the length before to the length after, and where the idle time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nsysdiag.comparison.changes import IMPROVED, REGRESSED, UNKNOWN, DeviceChanges
from nsysdiag.comparison.facts import Change, Move, PartChange, Renaming, Step
from nsysdiag.comparison.side import IDLE, WORK
from nsysdiag.units import format_ns, format_share, listed

MOSTLY, PARTLY = 0.5, 0.1
NOT_SHOWN = "The data do not show whether that is more than chance."
Flow = npt.NDArray[np.float64]


def cut(changes: DeviceChanges) -> list[PartChange]:
    """The unit of work cut into work and causes, once: they add up to its length."""
    return [part for part in changes.parts if part.id != IDLE] + changes.ledgers["ledger"]


def waterfall(rows: Sequence[PartChange]) -> list[Step]:
    """A step for each part that changed, the largest first."""
    steps = [Step(id=row.id, change_ns=row.change.change_ns) for row in rows if row.change.change_ns]
    return sorted(steps, key=lambda step: (-abs(step.change_ns), step.id))


def moves(rows: Sequence[PartChange], seen: Mapping[tuple[str, str], float]) -> list[Move]:
    """Where the time of each part went. Time on both sides is unchanged. The rest moves first as `seen` between two
    causes at one place of the program. What remains moves in proportion, from causes to causes and to exposed work.
    Idle time never moves to compute. Times before and after add up to those of `rows`."""
    ids = [row.id for row in rows]
    before = np.array([row.change.before_ns for row in rows], dtype=np.int64)
    after = np.array([row.change.after_ns for row in rows], dtype=np.int64)
    stayed = np.minimum(before, after)
    lost, won = before - stayed, after - stayed
    source = np.where([each not in WORK for each in ids], lost, 0).astype(np.float64)
    target = np.where([each != "compute" for each in ids], won, 0).astype(np.float64)
    known = _known(ids, seen, source, target)
    left, open_ = source - known.sum(axis=1), target - known.sum(axis=0)
    most = max(float(left.sum()), float(open_.sum()), 1.0)
    flow = known + np.outer(left, open_) / most
    found = [
        Move(before=each, after=each, ns=int(ns), seen_ns=int(ns)) for each, ns in zip(ids, stayed, strict=True) if ns
    ]
    whole = np.floor(flow + 1e-9).astype(np.int64)
    for one, two in np.argwhere(whole > 0).tolist():
        seen_ns = min(int(known[one, two]), int(whole[one, two]))
        found.append(Move(before=ids[one], after=ids[two], ns=int(whole[one, two]), seen_ns=seen_ns))
    went, came = lost - whole.sum(axis=1), won - whole.sum(axis=0)
    found += [Move(before=each, after=None, ns=int(ns), seen_ns=0) for each, ns in zip(ids, went, strict=True) if ns]
    found += [Move(before=None, after=each, ns=int(ns), seen_ns=0) for each, ns in zip(ids, came, strict=True) if ns]
    return sorted(found, key=lambda move: (-move.ns, move.before or "", move.after or ""))


def _known(ids: list[str], seen: Mapping[tuple[str, str], float], source: Flow, target: Flow) -> Flow:
    """What is seen to have changed its cause, no more of it than each cause lost and the other one got."""
    place = {each: at for at, each in enumerate(ids)}
    flow = np.zeros((len(ids), len(ids)))
    for (one, two), ns in seen.items():
        if one in place and two in place and one != two:
            flow[place[one], place[two]] += ns
    for axis, limit in ((1, source), (0, target)):
        total = flow.sum(axis=axis)
        share = np.minimum(limit / np.maximum(total, 1.0), 1.0)
        flow *= share[:, None] if axis == 1 else share[None, :]
    return flow


def renaming(
    rows: Sequence[PartChange], found: Sequence[Move], titles: Mapping[str, str], unknown: str = NOT_SHOWN
) -> Renaming:
    """Whether the time that causes lost, beyond chance, went or has other names now; `unknown` is said where nothing is
    known of chance."""
    changes = {row.id: row.change for row in rows}
    lost = [row.id for row in rows if row.id not in WORK and _counts(row.change, IMPROVED)]
    won = {row.id for row in rows if _counts(row.change, REGRESSED)}
    renamed = [move for move in found if move.before in lost and move.after in won]
    lost_ns = sum(-changes[each].change_ns for each in lost)
    renamed_ns = sum(move.ns for move in renamed)
    removed_ns = lost_ns - renamed_ns
    share = renamed_ns / lost_ns if lost_ns else 0.0
    verdict = "renamed" if share >= MOSTLY else "partly" if share >= PARTLY else "removed" if lost_ns else "none"
    sentence = _sentence(verdict, lost, renamed, lost_ns, titles)
    if any(row.change.verdict == UNKNOWN for row in rows):  # nothing is known of chance
        sentence = (
            "No cause of idle time lost more than the smallest change that counts; chance is unknown."
            if verdict == "none"
            else f"{sentence} {unknown}"
        )
    return Renaming(
        lost_ns=lost_ns,
        removed_ns=removed_ns,
        renamed_ns=renamed_ns,
        verdict=verdict,
        sentence=sentence,
    )


def _counts(change: Change, verdict: str) -> bool:
    """Is it a change for certain, or, where nothing is known of chance, large enough for one?"""
    if change.verdict != UNKNOWN:
        return change.verdict == verdict
    return (-change.change_ns if verdict == IMPROVED else change.change_ns) > change.least_ns


def _sentence(verdict: str, lost: list[str], renamed: list[Move], lost_ns: int, titles: Mapping[str, str]) -> str:
    if verdict == "none":
        return "No cause of idle time lost more than chance explains."
    what = _listed([titles.get(each, each) for each in lost])
    if verdict == "removed":
        return f"The idle time that {what} lost, {format_ns(lost_ns)}, is gone."
    to: dict[str, int] = {}
    for move in renamed:
        to[move.after or ""] = to.get(move.after or "", 0) + move.ns
    names = _listed([titles.get(each, each) for each in sorted(to, key=lambda each: (-to[each], each))])
    share = format_share(sum(to.values()), lost_ns)
    start = (
        "The idle time changed its cause and was not removed"
        if verdict == "renamed"
        else "Part of the idle time only changed its cause"
    )
    return f"{start}: of {format_ns(lost_ns)} that {what} lost, {share} came back as {names}."


def _listed(names: list[str]) -> str:
    few = names[:3] + ([f"{len(names) - 3} more"] if len(names) > 3 else [])
    return listed(few)
