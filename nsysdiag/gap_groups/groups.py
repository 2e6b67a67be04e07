"""Gaps that look alike, added up: same previous and next operation, same NVTX path, same dominant cause."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from itertools import chain

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import Groups, group_durations, least_of_each, to_planes, to_text
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, union
from nsysdiag.causes import CAUSES
from nsysdiag.events.identity import joint, tid_of
from nsysdiag.events.rows import Rows
from nsysdiag.gap_groups.details import GapContext, gap_moments
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.iterations.report import KindsOfGaps
from nsysdiag.kernels.names import normal_operation_names
from nsysdiag.limits import KEPT_NAMES, PLACES_CHARACTERS, mark_of
from nsysdiag.names import pseudonym
from nsysdiag.report import SignatureRow
from nsysdiag.stacks.call_sites import Place, places_of
from nsysdiag.time.facts import GapPlaces, NameColumn
from nsysdiag.time.table import OfSlices

# What makes two gaps alike: the operations on both sides, the place in the program, and the cause that leads.

# What torch.autograd.profiler.emit_nvtx puts behind the name of an operator: `aten::mul, seq = 12, op_id = 345`.
_OPERATOR_IDS = re.compile(r"(?<=[\w)]), (seq|op_id) = \d+(, |$).*")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
# Digits between two letters are part of a word, as in `conv2d`; all others count something.
_COUNTER = re.compile(r"(?<![^\W\d_])\d+|\d+(?![^\W_]|\d)")


class GapKinds(Rows, frozen=True):
    """Combinations of the codes of the previous operation, the next operation, the NVTX path and the dominant
    cause, which is its index in the registry."""

    previous: IntArray
    following: IntArray
    path: IntArray
    dominant: IntArray


class GapGroupKeys(Struct, frozen=True):
    """`code` is the combination of each gap, a row of `kinds`, which are in the order of their first gaps. The names of
    the codes in these have no counters."""

    code: IntArray
    kinds: GapKinds
    previous_names: list[str]
    next_names: list[str]
    paths: list[list[str]]

    @classmethod
    def of(cls, context: GapContext, dominant: IntArray) -> GapGroupKeys:
        """The keys of all gaps of a device; `dominant` is the leading cause of each, by whatever ledger."""
        gaps = context.frame.gaps
        previous, previous_names = normal_operation_names(context.device, gaps.previous, context.strings)
        following, next_names = normal_operation_names(context.device, gaps.next, context.strings)
        path, paths = normal_paths(context, context.lane, gap_moments(context.frame))
        sizes = max(len(next_names), 1), len(paths), len(CAUSES)
        key = joint(joint(joint(previous, following, sizes[0]), path, sizes[1]), dominant, sizes[2])
        present, code = distinct(key)
        order, code = _numbered_by_first_gap(code, gaps.start, len(present))
        return cls(code, _kinds(present[order], *sizes), previous_names, next_names, paths)

    def words(self, gap: int) -> tuple[str, str, list[str], str]:
        """Previous operation, next operation, NVTX path and cause of one gap."""
        kind, code = self.kinds, int(self.code[gap])
        return (
            self.previous_names[int(kind.previous[code])],
            self.next_names[int(kind.following[code])],
            self.paths[int(kind.path[code])],
            list(CAUSES)[int(kind.dominant[code])],
        )

    def path_of(self, gap: IntArray) -> IntArray:
        """The place in `paths` of each of these gaps."""
        return self.kinds.path.take(self.code.take(gap))

    def signature(self, gap: int) -> str:
        """The id of the signature that a gap belongs to."""
        return signature_id(*self.words(gap))


def signature_id(previous: str, following: str, path: list[str], cause: str) -> str:
    """The same words give the same id in every trace."""
    text = "\x1f".join((previous, following, *path, cause))
    return "s-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


@lru_cache(KEPT_NAMES)
def normal_range(name: str) -> str:
    """The name of a range without its counters: `step 17` and `step 18` are one place, `conv2d` keeps its digit, and
    all calls of a PyTorch operator have one name."""
    mark = mark_of(name)  # its digits distinguish long names
    plain = without_ids(name.removesuffix(mark))
    return pseudonym(name) or _COUNTER.sub("#", _ADDRESS.sub("#", plain)) + mark


def without_ids(name: str) -> str:
    """The name of a range without the ids that PyTorch gives to each call of an operator."""
    return _OPERATOR_IDS.sub("", name)


def normal_paths(context: GapContext, lane: IntArray, time: IntArray) -> tuple[IntArray, list[list[str]]]:
    """The NVTX path of each lane (-1: none) at a time, with counters out of the way: codes, and the path of each."""
    code, paths = context.ranges.path_codes(lane, time)
    normal = [tuple(normal_range(name) for name in path) for path in paths]
    distinct_paths = sorted(set(normal))
    place = {path: at for at, path in enumerate(distinct_paths)}
    recode = np.array([place[path] for path in normal], dtype=np.int32)
    return recode[code], [list(path) for path in distinct_paths]


def _numbered_by_first_gap(code: IntArray, start: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """So many groups in the order of their first gaps, so that ties do not depend on the order of rows; and the codes
    of gaps in that order."""
    order = np.argsort(least_of_each(code, start, count))
    rank = np.empty(count, dtype=np.int32)
    rank[order] = np.arange(count)
    return order, rank.take(code)


def _kinds(key: IntArray, following: int, paths: int, causes: int) -> GapKinds:
    """What joint numbers with so many next operations, paths and causes stand for."""
    key, dominant = np.divmod(key, causes)
    key, path = np.divmod(key, paths)
    return GapKinds(*(each.astype(np.int32) for each in (*np.divmod(key, following), path, dominant)))


def slices_in_words(context: GapContext, keys: GapGroupKeys) -> OfSlices:
    """The slices of `context` for the table of time: what the host did, where, and what ended the gap."""
    rows = context.slices.rows
    lane = context.lane[rows.gap]
    threads = np.append(tid_of(context.axis.threads), -1)
    named = {
        "call": NameColumn(rows.text, [typed.plain(text) for text in context.slices.texts]),
        "place": NameColumn(np.where(lane >= 0, keys.path_of(rows.gap), -1), [" › ".join(path) for path in keys.paths]),
        "operation": NameColumn(keys.kinds.following.take(keys.code.take(rows.gap)), keys.next_names),
    }
    return OfSlices(threads[lane], named)


MOST = 50
"""Gap groups of a device that a report keeps, those with most idle time. It bounds the size of a report; a comparison
notes that groups may be below it."""


def signature_rows(context: GapContext, keys: GapGroupKeys, steady: Intervals | None) -> list[SignatureRow]:
    """The signatures with most idle time, at most fifty, each with its longest gap as representative.

    `steady` are the steady iterations of the device, which do not overlap (None: it has none). What a signature costs
    an iteration is its idle time inside them by their number:

    ```
    iterations  [steady 0   )[steady 1   )[left out   )
    gaps          [10)         [14)         [90)            12 ns an iteration
    ```
    """
    gaps = context.frame.gaps
    if len(gaps) == 0:
        return []
    length = gaps.end - gaps.start
    groups = group_durations(keys.code, length)
    most = np.zeros(len(groups.code), dtype=np.int64)
    most[groups.code] = groups.longest
    longest = np.flatnonzero(length == taken(most, keys.code))
    first = least_of_each(keys.code[longest], longest, len(most))  # of equally long gaps
    inside = np.zeros(len(groups.code), dtype=np.int64)
    if steady is not None:
        np.add.at(inside, keys.code, coverage(union(steady), Intervals(gaps.start, gaps.end)))
    shown = groups.code[:MOST]
    number = np.full(len(groups.code), -1, dtype=np.int64)
    number[shown] = np.arange(len(shown))
    places = places_of(context.host_side, taken(number, keys.code), len(shown))
    cost = [None if steady is None else int(inside[group]) // len(steady) for group in shown.tolist()]
    return [
        _row(keys, gaps, groups, at, int(first[group]), cost[at], places[at]) for at, group in enumerate(shown.tolist())
    ]


def kinds_of_gaps(gaps: Gaps, keys: GapGroupKeys, rows: list[SignatureRow]) -> KindsOfGaps:
    """Which of the rows each gap is counted in."""
    place = np.full(len(keys.kinds), -1, dtype=np.int64)
    place[keys.code[[row.representative_index for row in rows]]] = np.arange(len(rows))
    return KindsOfGaps(Intervals(gaps.start, gaps.end), taken(place, keys.code), len(rows))


def _row(
    keys: GapGroupKeys, gaps: Gaps, groups: Groups, at: int, longest: int, per_iteration_ns: int | None, place: Place
) -> SignatureRow:
    """The group at place `at`, with its longest gap for words."""
    previous, following, path, cause = keys.words(longest)
    total = int(groups.total[at])
    return SignatureRow(
        id=signature_id(previous, following, path, cause),
        previous_op=previous,
        next_op=following,
        nvtx=path,
        cause=cause,
        count=int(groups.count[at]),
        total_ns=total,
        median_ns=int(groups.median[at]),
        max_ns=int(groups.longest[at]),
        representative_start_ns=int(gaps.start[longest]),
        representative_index=longest,
        p95_ns=int(groups.p95[at]),
        per_iteration_ns=per_iteration_ns,
        share_of_idle=round(total / int(groups.total.sum()), 6),
        call_site=place.site,
        host_code=place.code,
    )


# Packs the place of every gap into a few bytes: the operations on both sides and the NVTX path.

ROOM, FOR_EACH_GAP = 32_768, 0.5
"""Most characters of the names of operations in a report, and of those of ranges: a constant, plus this many for each
gap. The names of real traces take under 6,000; a report has 10 and more bytes for each gap."""
_LEVEL = 3
"""The effort of zlib, from 1 to 9. For a million gaps it takes a twentieth of a second more than 1, and makes a tenth
less; 6 is twice that."""


def pack_places(keys: GapGroupKeys, known: BoolArray) -> GapPlaces:
    """The places of all gaps; `known` tells of which the launching thread is known."""
    room = ROOM + int(FOR_EACH_GAP * len(known))
    operations = list(dict.fromkeys([*keys.previous_names, *keys.next_names]))
    if sum(map(len, operations)) > room:
        operations = []
    ranges, lengths, elements = _flat(keys.paths, room)
    kinds, code = keys.kinds, keys.code
    return GapPlaces(
        count=len(known),
        operations=operations,
        previous_op=_packed(_places(keys.previous_names, operations)[kinds.previous].take(code)) if operations else "",
        next_op=_packed(_places(keys.next_names, operations)[kinds.following].take(code)) if operations else "",
        ranges=ranges,
        paths=len(lengths),
        elements=len(elements),
        path_lengths=_packed(lengths),
        path_ranges=_packed(elements),
        nvtx=_packed(np.where(known, (kinds.path + 1).take(code), 0)) if len(lengths) else "",
    )


def _flat(paths: list[list[str]], room: int) -> tuple[list[str], IntArray, IntArray]:
    """The distinct names in the paths, the number of names of each path, and the indices of all of them, path after
    path; empty if they take too much space."""
    elements = list(chain.from_iterable(paths))
    ranges = list(dict.fromkeys(elements))
    characters = sum(map(len, elements))
    if len(paths) + len(elements) + sum(map(len, ranges)) > room or characters > PLACES_CHARACTERS:
        return [], np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return ranges, np.array([len(path) for path in paths], dtype=np.int64), _places(elements, ranges)


def _places(names: list[str], known: list[str]) -> IntArray:
    """The place of each name among the known ones."""
    place = {name: at for at, name in enumerate(known)}
    return np.array([place[name] for name in names], dtype=np.int64)


def _packed(values: IntArray) -> str:
    """The numbers as text; of none, none."""
    return to_text(to_planes(values), _LEVEL) if len(values) else ""
