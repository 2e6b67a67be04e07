"""What makes two gaps alike: the operations on both sides, the place in the program, and the cause that leads."""

from __future__ import annotations

import hashlib
import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.causes import CAUSES
from nsysdiag.events.identity import joint
from nsysdiag.events.nvtx import path_codes
from nsysdiag.events.rows import distinct
from nsysdiag.gap_groups.details import GapContext, gap_moments
from nsysdiag.kernels.operation_names import normal_operation_names
from nsysdiag.limits import mark_of
from nsysdiag.pseudonyms import pseudonym

# What torch.autograd.profiler.emit_nvtx puts behind the name of an operator: `aten::mul, seq = 12, op_id = 345`.
_OPERATOR_IDS = re.compile(r"(?<=\w), (seq|op_id) = \d+(, |$).*")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
# Digits between two letters are part of a word, as in `conv2d`; all others count something.
_COUNTER = re.compile(r"(?<![^\W\d_])\d+|\d+(?![^\W_]|\d)")


class GapKeys(Struct, frozen=True):
    """For each gap the codes of its previous and next operation, its NVTX path and its dominant cause (its index in the
    registry). The names of the codes have no counters. `code` numbers the different combinations in the order of their
    first gaps."""

    previous: IntArray
    previous_names: list[str]
    following: IntArray
    next_names: list[str]
    path: IntArray
    paths: list[list[str]]
    dominant: IntArray
    code: IntArray

    @classmethod
    def of(cls, context: GapContext, dominant: IntArray) -> GapKeys:
        """The keys of all gaps of a device; `dominant` is the leading cause of each, by whatever ledger."""
        gaps = context.frame.gaps
        previous, previous_names = normal_operation_names(context.device, gaps.previous, context.strings)
        following, next_names = normal_operation_names(context.device, gaps.next, context.strings)
        path, paths = normal_paths(context, context.lane, gap_moments(context.frame))
        key = joint(joint(previous, following, max(len(next_names), 1)), path, len(paths))
        _, code = distinct(joint(key, dominant, len(CAUSES)))
        code = _numbered_by_first_gap(code, gaps.start)
        return cls(previous, previous_names, following, next_names, path, paths, dominant, code)

    def words(self, gap: int) -> tuple[str, str, list[str], str]:
        """Previous operation, next operation, NVTX path and cause of one gap."""
        return (
            self.previous_names[int(self.previous[gap])],
            self.next_names[int(self.following[gap])],
            self.paths[int(self.path[gap])],
            list(CAUSES)[int(self.dominant[gap])],
        )

    def signature(self, gap: int) -> str:
        """The id of the signature that a gap belongs to."""
        return signature_id(*self.words(gap))


def signature_id(previous: str, following: str, path: list[str], cause: str) -> str:
    """The same words give the same id in every trace."""
    text = "\x1f".join((previous, following, *path, cause))
    return "s-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def normal_range(name: str) -> str:
    """The name of a range without its counters: `step 17` and `step 18` are one place, `conv2d` keeps its digit, and
    all calls of a PyTorch operator have one name."""
    mark = mark_of(name)  # its digits distinguish long names
    plain = _OPERATOR_IDS.sub("", name.removesuffix(mark))
    return pseudonym(name) or _COUNTER.sub("#", _ADDRESS.sub("#", plain)) + mark


def normal_paths(context: GapContext, lane: IntArray, time: IntArray) -> tuple[IntArray, list[list[str]]]:
    """The NVTX path of each lane (-1: none) at a time, with counters out of the way: codes, and the path of each."""
    code, paths = path_codes(context.ranges, context.axis, lane, time)
    normal = [tuple(normal_range(name) for name in path) for path in paths]
    distinct_paths = sorted(set(normal))
    place = {path: at for at, path in enumerate(distinct_paths)}
    recode = np.array([place[path] for path in normal], dtype=np.int32)
    return recode[code], [list(path) for path in distinct_paths]


def _numbered_by_first_gap(code: IntArray, start: IntArray) -> IntArray:
    """The same groups, numbered in the order of their first gaps, so that ties do not depend on the order of rows."""
    if len(code) == 0:
        return code
    first = least_of_each(code, start, int(code.max()) + 1)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[code]
