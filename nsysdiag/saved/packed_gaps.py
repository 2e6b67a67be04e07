"""All gaps of a saved report, read back into arrays."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.groups import numbers_from, running_sums
from nsysdiag.messages import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import GapsPacked


def unpack(packed: GapsPacked) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Start and length in ns and the index into `cause_ids` of every gap, one element each; not to be written to.

    Raises InputError where the fields contradict each other or cannot be decoded.
    """
    try:
        starts, lengths, causes = _unpacked(packed.count, packed.starts, packed.lengths, packed.causes)
    except ValueError as error:
        raise InputError("the packed gaps of this report cannot be read: the file is damaged") from error
    known = len(packed.cause_ids)
    if not len(starts) == len(lengths) == len(causes) == packed.count or np.any(causes >= known):
        raise InputError("the packed gaps of this report contradict each other: the file is damaged")
    return starts, lengths, causes


@lru_cache(maxsize=4)
def _unpacked(count: int, *columns: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Kept for the next section of a page that draws the same gaps."""
    starts, lengths, causes = (
        numbers_from(text, kind, count) for text, kind in zip(columns, ("<i8", "<i8", "u1"), strict=True)
    )
    starts = running_sums(starts)
    if len(lengths) and int(lengths.min()) < 0:
        raise ValueError("a gap of negative length")
    running_sums(lengths)
    for each in (starts, lengths, causes):
        each.flags.writeable = False
    return starts, lengths, causes
