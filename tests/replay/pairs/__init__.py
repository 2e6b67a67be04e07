"""Pairs of simulated programs, as they are and fixed, by subject: the truth that predictions are held against."""

from __future__ import annotations

from tests.replay.pairs import (
    combined,
    copies,
    graphs,
    hidden,
    host,
    inputs,
    kernels,
    messages,
    neighbours,
    others,
    outlasting,
    paced,
    paging,
    pipelines,
    polls,
    ranks,
    shapes,
    threads,
    turns,
    waits,
    windows,
    workers,
)
from tests.replay.pairs.pair import Pair, named

_SUBJECTS = (
    waits,
    copies,
    host,
    others,
    hidden,
    combined,
    workers,
    inputs,
    kernels,
    graphs,
    ranks,
    threads,
    turns,
    windows,
    paced,
    shapes,
    neighbours,
    outlasting,
    pipelines,
    messages,
    polls,
    paging,
)
PAIRS: dict[str, Pair] = named([each for subject in _SUBJECTS for each in subject.PAIRS])

__all__ = ["PAIRS", "Pair"]
