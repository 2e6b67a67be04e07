"""The timelines of real traces: small, and nothing missing from what is called exact."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.html.timeline_data import timelines
from nsysdiag.saved import unpack
from tests.levels import some
from tests.output.page import parse
from tests.output.timeline.test_data import Block, data_of
from tests.shared import Shared
from tests.timeline.decode import lanes, rows

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
FILES = sorted(FOLDER.glob("*.sqlite"))
MOST_PAGE, MOST_JSON = 500_000, 4 << 20
"""What a timeline may add to a page and to a saved report, in bytes."""

pytestmark = pytest.mark.real


@pytest.mark.sampled(normal=6)
@pytest.mark.parametrize("trace", some(FILES, 2) or [Path("none")], ids=lambda path: path.stem)
def test_a_real_timeline(trace: Path, shared: Shared) -> None:
    report = shared.report(trace)
    assert len(msgspec.json.encode(report.timeline)) < MOST_JSON
    page = FORMATS["html"].render(report, RenderOptions())
    drawn = timelines(report)
    if not drawn:
        return
    without = FORMATS["html"].render(msgspec.structs.replace(report, timeline=msgspec.UNSET), RenderOptions())
    assert len(page) - len(without) < MOST_PAGE
    value = data_of(parse(page))
    block, origin = Block(value), int(value["origin"])
    for (device, levels), shown in zip(drawn, value["devices"], strict=True):
        start, length, _ = unpack(device.gaps_packed)
        gaps = shown["gaps"]
        assert gaps["total"] == gaps["count"] == device.gap_count
        starts, lengths = block.gaps(value, shown)
        assert [each + origin for each in starts] == start.tolist()
        assert lengths == length.tolist()
        if levels.exact_operations == [(levels.start_ns, levels.end_ns)]:
            ops = device.ops
            held = [row for lane in lanes(levels, "stream") for row in rows(levels, lane)]
            assert len(held) == ops.kernel + ops.memcpy + ops.memset + ops.graph - ops.zero_length
            # No operation touches a gap, and one ends each.
            ends = {end for _, end, _, _ in held}
            assert {gap.start_ns for gap in device.gaps} <= ends
