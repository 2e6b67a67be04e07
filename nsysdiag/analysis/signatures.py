"""Gaps that look alike: same previous and next operation, same NVTX path, same dominant cause."""

from __future__ import annotations

import hashlib
import re

import numpy as np

from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.nvtx import path_codes
from nsysdiag.activity.streams import distinct
from nsysdiag.analysis.call_sites import places_of
from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.details import GapContext, gap_moments
from nsysdiag.analysis.grouping import group_durations
from nsysdiag.analysis.naming import operation_names
from nsysdiag.model import SignatureRow

MOST = 50
_COUNTER = re.compile(r"\d+")


def signature_rows(context: GapContext) -> list[SignatureRow]:
    """The signatures with most idle time, at most fifty, each with its longest gap as representative."""
    gaps = context.frame.gaps
    if len(gaps) == 0:
        return []
    previous, previous_names = operation_names(context.device, gaps.previous, context.strings)
    following, next_names = operation_names(context.device, gaps.next, context.strings)
    path, paths = _normal_paths(context)
    key = (previous * len(next_names) + following) * len(paths) + path
    present, code = distinct(key * len(CAUSES) + context.ledger.dominant)
    code = _numbered_by_first_gap(code, gaps.start)
    length = gaps.end - gaps.start
    groups = group_durations(code, length)
    order = np.lexsort((gaps.start, -length, code))
    first = order[np.searchsorted(code[order], np.arange(len(present)))]
    number = np.full(len(present), -1, dtype=np.int64)
    number[groups.code[:MOST]] = np.arange(len(groups.code[:MOST]))
    places = places_of(context.host_side, number[code], len(groups.code[:MOST]))
    ids = list(CAUSES)
    rows = []
    for at, group in enumerate(groups.code[:MOST].tolist()):
        gap = int(first[group])
        words = (previous_names[int(previous[gap])], next_names[int(following[gap])], paths[int(path[gap])])
        cause = ids[int(context.ledger.dominant[gap])]
        rows.append(
            SignatureRow(
                id=signature_id(*words, cause),
                previous_op=words[0],
                next_op=words[1],
                nvtx=words[2],
                cause=cause,
                count=int(groups.count[at]),
                total_ns=int(groups.total[at]),
                median_ns=int(groups.median[at]),
                max_ns=int(groups.longest[at]),
                representative_start_ns=int(gaps.start[gap]),
                call_site=places[at].site,
                host_code=places[at].code,
            )
        )
    return rows


def _normal_paths(context: GapContext) -> tuple[IntArray, list[list[str]]]:
    """The NVTX path of each gap with counters out of the way: `step 17` and `step 18` are one place in the program."""
    code, paths = path_codes(context.ranges, context.axis, context.lane, gap_moments(context.frame))
    normal = [tuple(without_counters(name) for name in path) for path in paths]
    distinct_paths = sorted(set(normal))
    place = {path: at for at, path in enumerate(distinct_paths)}
    recode = np.array([place[path] for path in normal], dtype=np.int64)
    return recode[code], [list(path) for path in distinct_paths]


def without_counters(name: str) -> str:
    """The name of a range with every number as `#`: `step 17` is `step #`."""
    return _COUNTER.sub("#", name)


def _numbered_by_first_gap(code: IntArray, start: IntArray) -> IntArray:
    """The same groups, numbered in the order of their first gaps, so that ties do not depend on the order of rows."""
    first = np.full(int(code.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, code, start)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[code]


def signature_id(previous: str, following: str, path: list[str], cause: str) -> str:
    """The same words give the same id in every trace."""
    text = "\x1f".join((previous, following, *path, cause))
    return "s-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
