"""The range that all gaps of a spot lie in."""

from __future__ import annotations

import pytest

from nsysdiag.findings.hotspots import _common_beginning


@pytest.mark.parametrize(
    ("paths", "common"),
    [
        ([], []),
        ([["train", "step"]], ["train", "step"]),
        ([["train", "step"], ["train", "step"]], ["train", "step"]),
        ([["train", "step", "forward"], ["train", "step", "backward"]], ["train", "step"]),
        ([["train", "step"], ["train"]], ["train"]),
        ([["train", "step"], ["test", "step"]], []),
        ([["train"], []], []),
    ],
)
def test_ranges_in_common_from_the_outermost_on(paths: list[list[str]], common: list[str]) -> None:
    assert _common_beginning(paths) == common
