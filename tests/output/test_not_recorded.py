"""What no trace tells stands under trace health in every output that a person reads."""

from __future__ import annotations

import pytest
from msgspec import structs

from nsysdiag.diagnosis.missing import NOT_RECORDED
from nsysdiag.formats import FORMATS, RenderOptions
from tests.output.samples import no_device, one_device


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["txt", "md", "html"])
def test_it_is_listed(name: str) -> None:
    for sample in (one_device(), no_device()):
        made = structs.replace(sample, not_recorded=list(NOT_RECORDED))
        shown = " ".join(FORMATS[name].render(made, RenderOptions(width=160, details=True)).decode().split())
        for row in NOT_RECORDED:
            assert row.what.split(" (")[0] in shown, row.what
        without = structs.replace(sample, not_recorded=[])
        assert "temperature" not in FORMATS[name].render(without, RenderOptions(details=True)).decode()


def test_what_a_dashboard_shows_beside_utilization_is_named() -> None:
    """What a reader of a utilization dashboard asks next: heat, swap, faults of the host."""
    words = " ".join(row.what for row in NOT_RECORDED)
    assert all(word in words for word in ("temperature", "power", "swapping", "page faults of the host"))
    assert all(row.tool for row in NOT_RECORDED)
