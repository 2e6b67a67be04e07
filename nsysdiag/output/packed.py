"""The packed form of all gaps, read back into arrays."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.model import GapsPacked


def unpack(packed: GapsPacked) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Start and length in ns and the index into `cause_ids` of every gap, one element each.

    Raises InputError where the fields contradict each other or cannot be decoded.
    """
    try:
        starts = np.cumsum(_array(packed.starts, "<i8"), dtype=np.int64)
        lengths = _array(packed.lengths, "<i8")
        causes = _array(packed.causes, "u1")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError("the packed gaps of this report cannot be read: the file is damaged") from error
    known = len(packed.cause_ids)
    if not len(starts) == len(lengths) == len(causes) == packed.count or np.any(causes >= known):
        raise InputError("the packed gaps of this report contradict each other: the file is damaged")
    return starts, lengths, causes


def _array(text: str, kind: str) -> npt.NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=kind).astype(np.int64)
