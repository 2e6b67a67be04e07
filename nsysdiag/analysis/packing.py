"""Every gap in a few bytes each: what a saved report keeps of those that it does not describe in full."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.gaps import Gaps
from nsysdiag.analysis.ledger import Ledger
from nsysdiag.compact import to_text
from nsysdiag.model import GapsPacked

_LEVEL = 1  # the deltas are small already; higher levels cost seconds on a million gaps and save a tenth


def pack_gaps(gaps: Gaps, ledger: Ledger) -> GapsPacked:
    """Starts as deltas, lengths, and dominant causes of all gaps, in order of time."""
    return GapsPacked(
        count=len(gaps),
        starts=packed(np.diff(gaps.start, prepend=np.int64(0)).astype("<i8")),
        lengths=packed((gaps.end - gaps.start).astype("<i8")),
        causes=packed(ledger.dominant.astype("<u1")),
        cause_ids=list(CAUSES),
    )


def packed(values: npt.NDArray[np.generic]) -> str:
    """The bytes of an array, compressed, as text."""
    return to_text(values.tobytes(), _LEVEL)
