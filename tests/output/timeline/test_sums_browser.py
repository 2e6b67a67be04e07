"""Sums of a range of time on the timeline, in a real browser. The first operations of the sample:

```
ms         90             91            92.5      93       94
stream 7   [=== gemm ====)               [= copy =)
NVTX       [------------------- step 0 -------------------)
```
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.output.browser import Browser
from tests.output.samples import MS, SAMPLES, device, report
from tests.output.timeline.driven import FIRST_GAP, PRESS, WHOLE, Timeline, written
from tests.output.timeline.samples import timeline

pytestmark = [pytest.mark.browser, pytest.mark.slow]
RANGE = "nsysdiagTimeline.selection().range"
CAUGHT = "(() => { window.caught = ''; navigator.clipboard.writeText = async (text) => { window.caught = text; }; })()"


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> str:
    whole = timeline(*WHOLE)
    levels = msgspec.structs.replace(whole, exact_operations=[(90 * MS, 140 * MS)])
    made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": levels})
    return written(made, tmp_path_factory.mktemp("partly"))


def test_a_drag_with_shift_selects_a_range(browser: Browser, address: str) -> None:
    shown = Timeline(browser, address)
    browser.drag(shown.x(100 * MS), shown.y("compute"), shown.x(120 * MS), shift=True)
    start, end = browser.value(RANGE)
    assert (start, end) == (pytest.approx(10 * MS, abs=100_000), pytest.approx(30 * MS, abs=100_000))
    assert shown.window == WHOLE
    browser.until(f"location.hash.includes('r={start + WHOLE[0]}-{end + WHOLE[0]}')")
    shown.keys("Enter")
    assert shown.window == (start + WHOLE[0], end + WHOLE[0])


def test_sums_are_exact(browser: Browser, address: str) -> None:
    """From the middle of the kernel to the middle of the copy, of 2.25 ms."""
    shown = Timeline(browser, address, "#t=90000000-94000000&r=90500000-92750000")
    tables = shown.tables
    assert tables["State"][:2] == [["Compute", "500 µs", "22.2%"], ["Copies", "250 µs", "11.1%"]]
    assert tables["Kernels"] == [["gemm<float>(int)", "500 µs", "22.2%", "1"]]
    assert tables["Copies and sets"] == [["memcpy HtoD", "250 µs", "11.1%", "1", "", ""]]
    assert "Collectives" not in tables


def test_idle_time_adds_up(browser: Browser, address: str) -> None:
    """Gaps are clipped to the range: half of the first one."""
    middle = sum(FIRST_GAP) // 2
    shown = Timeline(browser, address, f"#t=90000000-190000000&r={middle}-{FIRST_GAP[1]}")
    assert shown.tables["Idle, by leading cause"] == [["Waiting in a synchronisation", "200 µs", "100.0%", "1"]]
    assert shown.tables["State"][-1] == ["Idle", "200 µs", "100.0%"]


def test_the_keyboard_takes_and_moves_a_range(browser: Browser, address: str) -> None:
    shown = Timeline(browser, address)
    shown.keys("r")
    assert browser.value(RANGE) == [0, 100 * MS]
    shown.keys("Shift+ArrowLeft")
    assert browser.value(RANGE) == [0, 95 * MS]
    shown.keys("r")
    assert browser.value("nsysdiagTimeline.selection()") is None
    shown.keys("n", "r")  # that of the selected gap
    start, end = browser.value(RANGE)
    assert shown.tables["State"][-1][-1] == "100.0%"
    assert end > start


def test_a_range_of_nvtx_has_its_sums(browser: Browser, address: str) -> None:
    shown = Timeline(browser, address)
    shown.search("step 0")
    browser.key("Enter")
    assert shown.tables["Kernels"] == [["gemm<float>(int)", "1.00 ms", "25.0%", "1"]]


def test_sums_go_as_markdown(browser: Browser, address: str) -> None:
    shown = Timeline(browser, address, "#t=90000000-94000000&r=90500000-92750000")
    browser.value(CAUGHT)
    browser.value(PRESS.format("Copy as Markdown"))
    browser.until("!!window.caught")
    lines = browser.value("window.caught").split("\n")
    assert lines[0] == "**2.25 ms from 0.090500 s to 0.092750 s**"
    assert "| Kernels | Time | Share | Count |" in lines
    assert "| `gemm<float>(int)` | 500 µs | 22.2% | 1 |" in lines
    assert shown.browser.console == []


def test_a_range_becomes_the_window_of_a_command(browser: Browser, address: str) -> None:
    shown = Timeline(browser, address, "#t=90000000-94000000&r=90500000-92750000")
    assert "--from" not in shown.text(".gap-card")
    browser.value(PRESS.format("As window"))
    assert "--from 90500000ns --to 92750000ns" in shown.text(".gap-card")


class TestWhatIsNotKnown:
    """Where not every operation is held, states come from averages, and the card says so."""

    def test_it_is_said(self, browser: Browser, partly: str) -> None:
        shown = Timeline(browser, partly, "#t=90000000-190000000&r=90000000-190000000")
        assert "Every operation is known in 50.0% of this time" in shown.text(".gap-card")
        assert shown.tables["State"][0] == ["Compute", "50.2 ms", "50.2%"]  # 128 of 255 of each bucket

    def test_so_is_what_a_search_and_a_kernel_may_lack(self, browser: Browser, partly: str) -> None:
        shown = Timeline(browser, partly)
        shown.search("gemm")
        assert shown.found == "1 on this page"
        browser.key("Enter")
        assert "of those on this page never" in shown.text(".gap-card")

    def test_inside_of_the_exact_part_nothing_is_missing(self, browser: Browser, partly: str) -> None:
        shown = Timeline(browser, partly, "#t=90000000-190000000&r=90000000-94000000")
        assert "Every operation" not in shown.text(".gap-card")
        assert shown.tables["State"][0] == ["Compute", "1.00 ms", "25.0%"]


def test_sums_of_each_open_device(browser: Browser, tmp_path: Path) -> None:
    shown = Timeline(browser, written(SAMPLES["several_devices"](), tmp_path))
    shown.keys("r")
    one = len(browser.value("Array.from(document.querySelectorAll('.sums-tables'), () => 1)"))
    heading = "nsysdiagTimeline.layout().items.find((item) => item.type === 'device' && item.device.key === 'gpu1')"
    y = float(browser.value(f"(({{y, height}}) => y + height / 2)({heading})"))
    browser.click(shown.box["left"] + 20, shown.box["top"] + y)
    shown.keys("r", "r")
    assert (one, browser.value("document.querySelectorAll('.sums-tables').length")) == (1, 2)
