"""The packed names of a timeline: each by the lanes that show it, and damage told as such."""

from __future__ import annotations

import json

import numpy as np
import pytest
from msgspec import structs

from nsysdiag.arrays.groups import from_text, to_planes, to_text
from nsysdiag.fields import TextKind
from nsysdiag.messages import InputError
from nsysdiag.share.redaction import packed_names, repacked
from nsysdiag.timeline.facts import TimelineLane, TimelineLevels

NAMES = ["(name left out)", "gemm", "step 1", "cudaLaunchKernel", "read", "both", "unseen"]


def lane(kind: str, *names: int) -> TimelineLane:
    numbers = to_text(to_planes(np.array(names, dtype=np.int64)), 6)
    return TimelineLane(
        kind=kind,
        label="",
        thread=None,
        depth=0,
        levels=[],
        count=len(names),
        starts="",
        lengths="",
        names=numbers,
        kinds="",
    )


def timeline() -> TimelineLevels:
    lanes = [lane("stream", 1, 5), lane("nvtx", 2, 5), lane("api", 3), lane("os", 4, 4)]
    packed = to_text(json.dumps(NAMES).encode(), 6)
    return TimelineLevels(start_ns=0, end_ns=9, cause_ids=[], levels=[], names=packed, lanes=lanes)


def test_each_is_what_its_lanes_show() -> None:
    """A name of kernels and ranges is that of a kernel; what no lane shows is hidden like a range."""
    assert packed_names(timeline()) == [
        (TextKind.OWN, "(name left out)"),
        (TextKind.KERNEL, "gemm"),
        (TextKind.RANGE, "step 1"),
        (TextKind.API, "cudaLaunchKernel"),
        (TextKind.API, "read"),
        (TextKind.KERNEL, "both"),
        (TextKind.RANGE, "unseen"),
    ]


def test_names_keep_their_places() -> None:
    made = repacked(timeline(), lambda text, name: name if text is TextKind.API else f"{text.name} {len(name)}")
    assert json.loads(from_text(made, 1000)) == [
        *("(name left out)", "KERNEL 4", "RANGE 6", "cudaLaunchKernel", "read", "KERNEL 4", "RANGE 6")
    ]
    assert repacked(structs.replace(timeline(), names=""), lambda _text, name: name) == ""


@pytest.mark.parametrize("names", ["no base64!", to_text(b"no JSON", 6), to_text(b"[]", 6)[:-4]])
def test_damage_is_told(names: str) -> None:
    with pytest.raises(InputError, match="damaged"):
        packed_names(structs.replace(timeline(), names=names))
