"""The bottleneck that each slice of idle time counts to, by its root cause and what that looks like in detail."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.account.bottlenecks import CODE
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.causes import families_of
from nsysdiag.gap_groups.keys import GapKeys

MADE_AT_RUN_TIME = re.compile(r"compil|nvrtc|\bjit\b|\bptxas\b|autotun|codegen", re.IGNORECASE)
"""Ranges in which programs build the code that they launch next: NVRTC, XLA, Triton, fusion compilers."""
BUILDING = ("host", "unknown")


def slice_families(cause: IntArray, kind: IntArray, gap: IntArray, keys: GapKeys) -> IntArray:
    """An index into FAMILIES for each slice. `cause` is a place in the registry, `kind` one among the variants of
    the cause, `gap` the slice's gap. Host code inside a range that compiles is start-up."""
    found = families_of(cause, kind).astype(np.int8)
    builds = np.array([any(MADE_AT_RUN_TIME.search(name) for name in path) for path in keys.paths], dtype=np.bool_)
    if builds.any():
        found[builds[keys.path[gap]] & np.isin(found, [CODE[name] for name in BUILDING])] = CODE["startup"]
    return found
