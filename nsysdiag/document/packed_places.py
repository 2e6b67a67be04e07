"""Reads the packed places of all gaps of a saved report: the operations on both sides and the NVTX path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.codes import from_planes, from_text
from nsysdiag.document.words import path_label
from nsysdiag.errors import InputError
from nsysdiag.gap_groups.facts import width_of
from nsysdiag.limits import PLACES_CHARACTERS

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import GapsPacked

    Codes = npt.NDArray[np.int64]


class Coded(Struct, frozen=True):
    """A text for each gap: its place in `names`, -1 where it is unknown."""

    codes: Codes
    names: list[str]

    @classmethod
    def unknown(cls, count: int) -> Coded:
        """Of so many gaps."""
        return cls(np.full(count, -1, dtype=np.int64), [])


class Places(Struct, frozen=True):
    """Of every gap of a device the operation before it, the one that ends it, and the label of its NVTX path."""

    previous_op: Coded
    next_op: Coded
    nvtx: Coded


def unpack_places(packed: GapsPacked) -> Places:
    """The places of all gaps, unknown where the report holds none. Raises InputError where the fields contradict each
    other or cannot be decoded."""
    places, count = packed.places, packed.count
    if places is None:
        return Places(*[Coded.unknown(count)] * 3)
    try:
        if places.count != count:
            raise ValueError("places of other gaps")
        labels = _labels(
            _codes(places.path_lengths, places.paths, 256),
            _codes(places.path_ranges, places.elements, len(places.ranges)),
            places.ranges,
        )
        previous, following = (
            Coded(_codes(text, count, len(places.operations)), places.operations) if text else Coded.unknown(count)
            for text in (places.previous_op, places.next_op)
        )
        path = _codes(places.nvtx, count, places.paths + 1) if places.nvtx else np.zeros(count, dtype=np.int64)
    except ValueError as error:
        raise InputError("the packed places of gaps of this report cannot be read: the file is damaged") from error
    return Places(previous, following, Coded(path - 1, labels))


def _codes(text: str, count: int, numbers: int) -> Codes:
    """So many numbers, each below `numbers`. Raises ValueError where they are not."""
    data = from_text(text, count * width_of(numbers)) if text else b""
    codes = from_planes(data, count)
    if len(codes) and int(codes.max()) >= numbers:
        raise ValueError("a number of nothing")
    return codes


def _labels(lengths: Codes, elements: Codes, ranges: list[str]) -> list[str]:
    """A label for each path. Raises ValueError where the lengths do not fit, or all are longer than any we write."""
    ends = np.cumsum(lengths)
    if int(lengths.sum()) != len(elements):
        raise ValueError("paths of other lengths")
    characters = np.array([len(name) for name in ranges], dtype=np.int64)
    if int(characters[elements].sum()) > PLACES_CHARACTERS:
        raise ValueError("paths without end")
    names = [ranges[at] for at in elements.tolist()]
    return [path_label(names[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
