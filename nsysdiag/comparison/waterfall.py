"""The way from the length before to the length after, and where the idle time went."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nsysdiag.comparison import facts
from nsysdiag.comparison.sides import IDLE, LENGTH, WORK, Capture, column
from nsysdiag.comparison.significance import LEAST_CHANGE, LEVEL, Values, drawn_means, drift, freedom, interval, student
from nsysdiag.units import format_ns, format_share, listed

# The change of each part of a unit of work, with its interval and verdict.
#
# If several devices are compared, one comparison in twenty may be wrong, not one device in twenty: `corrected`
# judges all of them by Hochberg's procedure.

LEAST_OF_LENGTH = 0.005
"""Of a unit of work: a part that changed by less does not count. If smaller, causes with next to no time get
verdicts."""
LEAST_OF_RUN = 0.05
"""Of the total time of one run: what one and the same program may take more or less when it is run again."""
LEDGERS = ("ledger", "root")


class DeviceChanges(msgspec.Struct, frozen=True):
    """The changes of one device: `times` has those of the length, of its parts and of the causes of both ledgers, by
    column; `own` those of kernels and gaps. `noise` is a share of the length, `freedom` are the degrees of freedom
    behind the intervals, None if there are none."""

    times: dict[str, facts.Change]
    own: dict[Hashable, facts.Change]
    noise: float
    freedom: float | None

    @property
    def length(self) -> facts.Change:
        """That of the whole unit of work."""
        return self.times[LENGTH]

    @property
    def parts(self) -> list[facts.PartChange]:
        """Those of work and of idle time, which add up to the length."""
        return [facts.PartChange(id=name, change=self.times[name]) for name in (*WORK, IDLE)]

    def ledger(self, ledger: str) -> list[facts.PartChange]:
        """Those of the causes, which add up to the idle time, the largest time first."""
        names = [name for name in self.times if name.startswith(f"{ledger}.")]
        rows = [facts.PartChange(id=name.partition(".")[2], change=self.times[name]) for name in names]
        return sorted(rows, key=lambda row: (-max(row.change.before_ns, row.change.after_ns), row.id))

    def cut(self) -> list[facts.PartChange]:
        """The unit of work cut into work and causes, once: they add up to its length."""
        return [*self.parts[: len(WORK)], *self.ledger("ledger")]


def changes(
    before: Sequence[Capture],
    after: Sequence[Capture],
    pooled: Sequence[str],
    further: Mapping[Hashable, tuple[list[list[str]], list[list[str]]]],
) -> DeviceChanges:
    """The changes of one device, all by the same draws. Causes in `pooled` are compared as one; `further` are the
    columns of kernels and gaps on both sides."""
    names = _columns([*before, *after], pooled)
    left, right = (
        [_values(each, [*names.values(), *(own[side][at] for own in further.values())]) for at, each in enumerate(its)]
        for side, its in enumerate((before, after))
    )
    means = [float(np.concatenate([values[:, 0] for values in side]).mean()) for side in (left, right)]
    longer = means[0] > means[1]  # the same draws whichever side is called before
    one, two = drawn_means(left, int(longer)), drawn_means(right, int(not longer))
    noise, bounds = max(drift(left, one), drift(right, two)), interval(one, two)
    # Kernels and gaps are not parts that add up to anything.
    times = (
        [*_whole_numbers([*names], side.mean), *(round(float(ns)) for ns in side.mean[len(names) :])]
        for side in (one, two)
    )
    found = []
    for at, (before_ns, after_ns) in enumerate(zip(*times, strict=True)):
        its = None if bounds is None else (float(bounds[0][at]), float(bounds[1][at]))
        least = _least(before_ns, after_ns, float(one.mean[0]), noise, whole=at == 0)
        found.append(_made(before_ns, after_ns, its, least))
    own = dict(zip(further, found[len(names) :], strict=True))
    return DeviceChanges(dict(zip(names, found, strict=False)), own, noise, freedom(one, two))


def _columns(captures: Sequence[Capture], pooled: Sequence[str]) -> dict[str, list[str]]:
    """The columns of the length, its parts and both ledgers, and of which columns each is the sum: pooled causes are
    one."""
    causes: dict[str, list[str]] = {}
    for name in {name for capture in captures for name in capture.table}:
        ledger, _dot, cause = name.partition(".")
        if ledger in LEDGERS and cause in pooled:
            causes[f"{ledger}.{facts.NOT_COMPARED}"] = [f"{ledger}.{each}" for each in pooled]
        elif ledger in LEDGERS:
            causes[name] = [name]
    return {name: [name] for name in (LENGTH, *WORK, IDLE)} | dict(sorted(causes.items()))


def _values(capture: Capture, columns: Sequence[list[str]]) -> Values:
    """ns, a row for each unit of work and a column for each sum of columns."""
    zero = np.zeros(len(capture.table[LENGTH]))
    return np.stack([sum((column([capture], name)[0] for name in each), start=zero) for each in columns], axis=1)


def _whole_numbers(names: Sequence[str], means: Values) -> list[int]:
    """Length, its parts, and the ledgers of the idle part, each level adding up to the one above."""
    whole = [0] * len(names)
    whole[0] = round(float(means[0]))

    def divide(total: int, places: list[int]) -> None:
        for at, ns in zip(places, adding_up(means[places], total), strict=True):
            whole[at] = ns

    divide(whole[0], [at for at, name in enumerate(names) if name in (*WORK, IDLE)])
    for ledger in LEDGERS:
        divide(whole[names.index(IDLE)], [at for at, name in enumerate(names) if name.startswith(f"{ledger}.")])
    return whole


def adding_up(values: Values, total: int) -> list[int]:
    """The values (at least 0) rounded to whole numbers that add up to `total`: the largest remainders are rounded up.

    ```
    1.4 + 2.4 + 3.2 = 7   ->   2 + 2 + 3
    ```
    """
    if len(values) == 0:
        return []
    whole = np.floor(values).astype(np.int64)
    left = total - int(whole.sum())
    if 0 <= left <= len(whole):
        whole[np.argsort(whole - values, kind="stable")[:left]] += 1
    else:  # more than rounding: the largest takes it
        whole[int(np.argmax(values))] += left
    return [int(each) for each in whole]


def change_of_step(before: int, after: int, bounds: tuple[float, float] | None, noise: float) -> facts.Change:
    """The change of the time of a step between its `bounds`, of which a side may drift by `noise`."""
    return _made(before, after, bounds, _least(before, after, before, noise, whole=True))


def change_of_run(change: facts.Change, chance: float | None) -> facts.Change:
    """The change of the whole time of one run a side, of which chance changes a share; None for any other."""
    if chance is None:
        return change
    least = int(np.ceil(max(LEAST_OF_RUN, chance) * change.before_ns))
    return replace(
        change, least_ns=least, verdict=_verdict(change.change_ns, change.change_ns, change.change_ns, least)
    )


def change_between(before: int, after: int, bounds: tuple[int, int] | None) -> facts.Change:
    """A change between bounds that hold whatever its size."""
    return _made(before, after, bounds, 0)


def change_of_part(before: int, after: int, length: int, noise: float = 0.0) -> facts.Change:
    """The change of a part of a length, of which only both means are known. A side may drift by `noise`."""
    return _made(before, after, None, _least(before, after, length, noise))


def _made(before: int, after: int, bounds: tuple[float, float] | None, least: int) -> facts.Change:
    low, high = (None, None) if bounds is None else (int(np.floor(bounds[0])), int(np.ceil(bounds[1])))
    return facts.Change(
        before_ns=before,
        after_ns=after,
        change_ns=after - before,
        low_ns=low,
        high_ns=high,
        least_ns=least,
        verdict=_verdict(after - before, low, high, least),
    )


def _least(before: int, after: int, length: float, noise: float, *, whole: bool = False) -> int:
    """The smallest change that counts: 2% of the larger side or the noise of that side; for a part of a unit of work
    also half a percent of the whole unit."""
    own = max(LEAST_CHANGE, noise) * (before if whole else max(before, after))
    return int(np.ceil(own if whole else max(own, LEAST_OF_LENGTH * length)))


def _verdict(change: int, low: int | None, high: int | None, least: int) -> str:
    if low is None or high is None:
        return facts.UNKNOWN
    if low <= 0 <= high or abs(change) <= least:
        return facts.SAME
    return facts.REGRESSED if change > 0 else facts.IMPROVED


def is_chance(change: facts.Change) -> bool:
    """May it be none, by its interval?"""
    return change.low_ns is not None and change.high_ns is not None and change.low_ns <= 0 <= change.high_ns


def too_small(change: facts.Change) -> bool:
    """Is it beyond chance, and smaller than what counts?"""
    if change.low_ns is None or change.high_ns is None or is_chance(change):
        return False
    return abs(change.change_ns) <= change.least_ns


def outweighed(change: facts.Change) -> bool:
    """Does its interval alone say that it changed?"""
    if change.low_ns is None:
        return False
    alone = _verdict(change.change_ns, change.low_ns, change.high_ns, change.least_ns)
    return change.verdict == facts.SAME != alone


Judged = tuple[facts.Change, float | None]
"""A change and the degrees of freedom behind its interval."""


def corrected(devices: Sequence[DeviceChanges]) -> list[DeviceChanges]:
    """The changes of devices that are compared together, corrected for multiple testing. A length, part or cause that
    is no longer significant together with those of the other devices gets the verdict `same`. Intervals stay those of
    the single device.

    Each device's interval excludes 0 by chance one time in twenty: of eight independent devices, one does so in every
    third comparison. With Hochberg's procedure, all devices together are wrong as rarely as one alone. A length takes
    99%, its parts 95%:

    ```
    4 devices   a length counts   on all of them              if 0 is outside of all intervals at 99%
                                  on 3 of them                if 0 is outside of theirs at 99.5%
                                  on 2                        at 99.67%
                                  on 1                        at 99.75%
    ```

    This holds for independent devices, and for devices that change together, such as ranks that wait for each other. If
    all changed alike, each must pass the plain test only.
    """
    found = [dict(each.times) for each in devices]
    for name in dict.fromkeys(name for each in devices for name in each.times):
        places = [at for at, each in enumerate(devices) if name in each.times]
        its = [(devices[at].times[name], devices[at].freedom) for at in places]
        for at, change in zip(places, judged_together(its, OF_LENGTH if name == LENGTH else LEVEL), strict=True):
            found[at][name] = change
    return [replace(each, times=times) for each, times in zip(devices, found, strict=True)]


OF_LENGTH = 0.01
"""The level at which a length has changed: of 828 pairs of runs of one program, 4 had changed at 0.05."""


def judged_together(changes: Sequence[Judged], level: float = LEVEL) -> list[facts.Change]:
    """The changes of one name on all devices. Those that count no more have the verdict `same`."""
    known = [each for each in changes if each[0].verdict != facts.UNKNOWN]
    for less in range(len(known)):  # so many of the devices may have 0 inside
        found = [outside(*each, level / (less + 1)) for each in known]
        if sum(found) >= len(known) - less:
            break
    else:
        found = [False] * len(known)
    holds = iter(found)
    return [
        change if change.verdict == facts.UNKNOWN or next(holds) else replace(change, verdict=facts.SAME)
        for change, _freedom in changes
    ]


def outside(change: facts.Change, freedom: float | None, level: float) -> bool:
    """Is 0 outside of the interval at this level, which is as much longer than at 5% as Student's t is?"""
    if freedom is None or change.low_ns is None or change.high_ns is None:
        return False
    to_zero = (change.change_ns - change.low_ns) if change.change_ns > 0 else (change.high_ns - change.change_ns)
    return to_zero * student(freedom, level) / student(freedom) < abs(change.change_ns)


MOSTLY, PARTLY = 0.5, 0.1
"""Of the time that causes lost and others won: from the first share on it was renamed, from the second on renamed in
part. They change only the verdict and its sentence, not the times."""
NOT_SHOWN = "The data do not show whether that is more than chance."
Flow = npt.NDArray[np.float64]


def waterfall(rows: Sequence[facts.PartChange]) -> list[facts.Step]:
    """A step for each part that changed, the largest first."""
    steps = [facts.Step(id=row.id, change_ns=row.change.change_ns) for row in rows if row.change.change_ns]
    return sorted(steps, key=lambda step: (-abs(step.change_ns), step.id))


def moves(rows: Sequence[facts.PartChange], seen: Mapping[tuple[str, str], float]) -> list[facts.Move]:
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
    flow = known + np.outer(left, open_) / max(float(left.sum()), float(open_.sum()), 1.0)
    whole = np.floor(flow + 1e-9).astype(np.int64)
    stay = np.diag(stayed)
    # The last row is what came from nowhere, the last column what went.
    shown = np.pad(np.minimum(known.astype(np.int64), whole) + stay, (0, 1))
    whole = np.block([[whole + stay, (lost - whole.sum(axis=1))[:, None]], [won - whole.sum(axis=0), np.int64(0)]])
    ends = [*ids, None]
    found = [
        facts.Move(before=ends[one], after=ends[two], ns=int(whole[one, two]), seen_ns=int(shown[one, two]))
        for one, two in np.argwhere(whole).tolist()
    ]
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
    rows: Sequence[facts.PartChange], found: Sequence[facts.Move], titles: Mapping[str, str], unknown: str = NOT_SHOWN
) -> facts.Renaming:
    """Whether the time that causes lost, beyond chance, went or has other names now; `unknown` is said if nothing is
    known of chance."""
    changes = {row.id: row.change for row in rows}
    lost = [row.id for row in rows if row.id not in WORK and _counts(row.change, facts.IMPROVED)]
    won = {row.id for row in rows if _counts(row.change, facts.REGRESSED)}
    renamed = [move for move in found if move.before in lost and move.after in won]
    lost_ns = sum(-changes[each].change_ns for each in lost)
    renamed_ns = sum(move.ns for move in renamed)
    share = renamed_ns / lost_ns if lost_ns else 0.0
    verdict = "renamed" if share >= MOSTLY else "partly" if share >= PARTLY else "removed" if lost_ns else "none"
    sentence = _sentence(verdict, lost, renamed, lost_ns, titles)
    if any(row.change.verdict == facts.UNKNOWN for row in rows):  # nothing is known of chance
        sentence = (
            "No cause of idle time lost more than the smallest change that counts; chance is unknown."
            if verdict == "none"
            else f"{sentence} {unknown}"
        )
    return facts.Renaming(
        lost_ns=lost_ns, removed_ns=lost_ns - renamed_ns, renamed_ns=renamed_ns, verdict=verdict, sentence=sentence
    )


def _counts(change: facts.Change, verdict: str) -> bool:
    """Is it a change for certain, or, if nothing is known of chance, large enough for one?"""
    if change.verdict != facts.UNKNOWN:
        return change.verdict == verdict
    return (-change.change_ns if verdict == facts.IMPROVED else change.change_ns) > change.least_ns


def _sentence(verdict: str, lost: list[str], renamed: list[facts.Move], lost_ns: int, titles: Mapping[str, str]) -> str:
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
