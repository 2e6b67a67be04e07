"""The timeline in a real browser, by mouse and by keyboard. The run of the sample lasts from 90 to 190 ms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.output.browser import Browser, Chromium
from tests.output.gpu_metric_samples import gpu_metrics
from tests.output.samples import HOSTILE, MS, SAMPLES, device, report
from tests.output.timeline.driven import FIRST_GAP, WHOLE, Timeline, written
from tests.output.timeline.samples import lane, served, timeline

pytestmark = [pytest.mark.browser, pytest.mark.slow]
AXIS = 24


def test_it_is_drawn_without_complaint_and_asks_for_nothing(shown: Timeline, address: str) -> None:
    assert shown.window == WHOLE
    assert shown.browser.console == []
    assert [url for url in shown.browser.requests if not url.startswith(("about:", "data:"))] == [address]
    assert shown.browser.value("getComputedStyle(document.querySelector('.still')).display") == "none"
    assert "Every slice of this window is exact." in shown.text(".stage-detail")
    assert shown.text("#timeline-command") == (
        "nsysdiag analyze train.sqlite --from 90000000ns --to 190000000ns -o detail.html"
    )


def test_keys_zoom_and_move(shown: Timeline) -> None:
    shown.keys("w")
    assert shown.window == (110 * MS, 170 * MS)
    shown.keys("a")
    assert shown.window == (98 * MS, 158 * MS)
    shown.keys("ArrowRight", "d")
    assert shown.window == (122 * MS, 182 * MS)
    shown.keys("d", "d")  # no further than the end
    assert shown.window == (130 * MS, 190 * MS)
    shown.keys("s")
    assert shown.window == WHOLE
    shown.keys("+", "-", "w", "Home")
    assert shown.window == WHOLE
    shown.keys("w", "0")
    assert shown.window == WHOLE
    assert shown.text(".stage-now") == "0.0900 s to 0.1900 s, 100 ms"


def test_down_to_a_nanosecond(shown: Timeline) -> None:
    shown.keys(*["w"] * 60)
    start, end = shown.window
    assert end - start == 10
    assert shown.browser.value("nsysdiagTimeline.view.span()") == 10


def test_the_mouse_moves_and_zooms(shown: Timeline) -> None:
    shown.keys("w")
    width, y = shown.browser.value("nsysdiagTimeline.view.width"), shown.y("compute")
    shown.browser.drag(shown.x(140 * MS), y, shown.x(140 * MS) + 100)
    assert shown.window[0] == pytest.approx(110 * MS - 100 / width * 60 * MS, abs=2)
    shown.keys("0")


def test_the_wheel_is_the_pages_own_without_the_focus(shown: Timeline) -> None:
    x, y = shown.x(115 * MS), shown.y("compute")
    shown.browser.value("document.activeElement.blur()")
    before = shown.browser.value("scrollY")
    shown.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    shown.browser.until(f"scrollY < {before}")
    assert shown.window == WHOLE
    shown.look()
    shown.focus()
    shown.browser.mouse("mouseWheel", x, shown.y("compute"), deltaX=0, deltaY=-200)
    shown.browser.until("document.querySelector('canvas.lanes').dataset.from !== '90000000'")
    start, end = shown.window
    assert end - start < 100 * MS
    assert (115 * MS - start) / (end - start) == pytest.approx(0.25, abs=0.01)  # it stays where it is


def test_the_pointer_is_told_exact_times(shown: Timeline) -> None:
    shown.browser.mouse("mouseMoved", shown.x(90.5 * MS), shown.y("stream"))
    assert shown.text(".tip").split("\n") == [
        "gemm<float>(int)",
        "1,000,000 ns (1.00 ms)",
        "from 90,000,000 ns",
        "to 91,000,000 ns",
        "Compute, stream 7",
    ]
    shown.browser.mouse("mouseMoved", shown.x(sum(FIRST_GAP) / 2), shown.y("gaps"))
    assert shown.text(".tip").split("\n") == [
        "Gap: Waiting in a synchronisation",
        "400,000 ns (400 µs)",
        "from 100,000,000 ns",
        "to 100,400,000 ns",
    ]
    shown.browser.mouse("mouseMoved", shown.box["left"] + shown.box["width"] - 2, shown.y("nvtx"))
    shown.browser.mouse("mouseMoved", shown.x(94 * MS - 1000), shown.y("nvtx"))
    box = "document.querySelector('.tip').getBoundingClientRect()"
    right, bottom, width, height = shown.browser.value(
        f"(({{right, bottom}}) => [right, bottom, innerWidth, innerHeight])({box})"
    )
    assert right <= width
    assert bottom <= height
    shown.keys("d")
    assert shown.browser.value("document.querySelector('.tip').hidden")


def test_a_click_selects_a_gap_and_shows_its_card(shown: Timeline) -> None:
    shown.browser.click(shown.x(sum(FIRST_GAP) / 2), shown.y("gaps"))
    assert shown.gap == "0.100000000"
    card = shown.text(".gap-card")
    for part in ("400 µs idle on gpu0", "400,000 ns", "cudaStreamSynchronize on thread 4242, row 0", "train › step 0"):
        assert part in card
    assert "Selected: gap of 400,000 ns on gpu0, Waiting in a synchronisation" in shown.text(".stage-now")
    shown.keys("n")
    assert shown.gap == "0.102000000"
    shown.keys("Enter")
    assert shown.window == (102 * MS - 199_500, 102 * MS + 399_000 + 199_500)
    shown.keys("p", "Escape")
    assert shown.gap == ""
    assert shown.browser.value("document.querySelector('.gap-card').hidden")


class TestFingers:
    """A finger is put down on the lane of streams, in the middle of a window of the browser."""

    def test_two_zoom_and_what_lies_between_them_stays(self, shown: Timeline) -> None:
        middle, y = shown.x(120 * MS), shown.y("stream")
        shown.browser.fingers(*([(middle - 20 * step, y), (middle + 20 * step, y + 2)] for step in range(2, 9)))
        start, end = shown.window
        assert end - start == pytest.approx(100 * MS / 4, rel=0.05)
        assert shown.x(120 * MS) == pytest.approx(middle, abs=2)
        assert shown.gap == ""

    def test_two_move_together(self, shown: Timeline) -> None:
        shown.keys("w")
        start, end = shown.window
        x, y = shown.x(130 * MS), shown.y("stream")
        shown.browser.fingers(*([(x + by, y), (x + 100 + by, y)] for by in (0, 30, 60, 90)))
        assert shown.x(130 * MS) == pytest.approx(x + 90, abs=2)
        after = shown.window
        assert after[1] - after[0] == pytest.approx(end - start, rel=0.01)

    def test_one_moves_sideways(self, shown: Timeline) -> None:
        shown.keys("w")
        x, y = shown.x(140 * MS), shown.y("stream")
        top = shown.browser.value("scrollY")
        shown.browser.fingers(*([(x - by, y)] for by in range(0, 210, 30)))
        assert shown.x(140 * MS) < x - 120
        assert shown.browser.value("scrollY") == top

    def test_one_scrolls_the_page_up_and_down(self, shown: Timeline) -> None:
        x, y = shown.x(140 * MS), shown.y("stream")
        top = shown.browser.value("scrollY")
        shown.browser.fingers(*([(x, y - by)] for by in range(0, 80, 10)))
        shown.browser.until(f"scrollY > {top}")
        assert shown.window == WHOLE

    def test_a_tap_selects_and_tells(self, shown: Timeline) -> None:
        shown.browser.fingers([(shown.x(sum(FIRST_GAP) / 2), shown.y("gaps"))])
        shown.browser.until("!document.querySelector('.tip').hidden")
        assert shown.gap == "0.100000000"
        assert shown.text(".tip").startswith("Gap: Waiting in a synchronisation")


def test_keys_go_from_device_to_device(browser: Browser, tmp_path: Path) -> None:
    shown = Timeline(browser, written(SAMPLES["several_devices"](), tmp_path))
    assert shown.text(".stage-now").endswith("Open: gpu0")
    shown.keys("]", "]")
    assert shown.text(".stage-now").endswith("Open: gpu2")
    shown.keys("[", "n")
    assert shown.gap.startswith("1.")
    folded = browser.value("nsysdiagTimeline.devices.map((device) => device.open)")
    assert folded == [False, True, False, False]


def test_a_thread_of_several_devices_is_drawn_once(browser: Browser, tmp_path: Path) -> None:
    """Under the first device that is open; under the others a line says where."""
    made = report([device(), device(1)], [])
    lines = {"gpu0": timeline(*WHOLE), "gpu1": served(*WHOLE)}
    shown = Timeline(browser, written(msgspec.structs.replace(made, timeline=lines), tmp_path))

    def drawn() -> list[list[str]]:
        found: list[list[str]] = browser.value(
            "nsysdiagTimeline.layout().items.filter((item) => item.thread || item.type === 'thread')"
            ".map((item) => [item.device.key, item.type, item.label])"
        )
        return found

    first = drawn()
    assert [each[:2] for each in first] == [
        *(["gpu0", kind] for kind in ("thread", "nvtx", "api", "thread", "os")),
    ]
    heading = "nsysdiagTimeline.layout().items.find((item) => item.type === 'device' && item.device.key === 'gpu1')"
    y = float(browser.value(f"(({{y, height}}) => y + height / 2)({heading})"))
    browser.click(shown.box["left"] + 20, shown.box["top"] + y)
    assert drawn() == [*first, ["gpu1", "thread", "python 4242: see gpu0"], ["gpu1", "thread", "worker 4250: see gpu0"]]
    shown.keys("]")
    assert [each[0] for each in drawn()] == ["gpu1"] * 5
    assert browser.console == []


def test_a_gap_that_the_table_leaves_out_has_a_card_too(shown: Timeline) -> None:
    shown.browser.value("history.replaceState(null, '', '#'); location.hash = '#t=90000000-90010000&g=0.90004000'")
    shown.browser.until("document.querySelector('canvas.lanes').dataset.gap === '0.90004000'")
    assert "809 ns idle on gpu0 · Host computing" in shown.text(".gap-card")
    assert "The table of gaps on this page omits this gap" in shown.text(".gap-card")


class TestLinks:
    def test_a_link_brings_window_and_gap_back(self, browser: Browser, address: str) -> None:
        shown = Timeline(browser, address, "#t=99000000-102000000&g=0.100000000")
        assert shown.window == (99 * MS, 102 * MS)
        assert shown.gap == "0.100000000"
        length = browser.value("history.length")
        shown.keys("w", "d")
        browser.until("location.hash !== '#t=99000000-102000000&g=0.100000000'")
        start, end = shown.window
        assert browser.value("location.hash") == f"#t={start}-{end}&g=0.100000000"
        assert browser.value("history.length") == length
        assert browser.console == []

    @pytest.mark.parametrize("link", ["#t=", "#t=1-2&g=9.9", "#t=9-1", "#t=x-y", "#gaps", "#t=99999999999999999999-1"])
    def test_a_link_of_another_kind_does_no_harm(self, link: str, browser: Browser, address: str) -> None:
        shown = Timeline(browser, address, link)
        assert shown.gap == ""
        assert browser.console == []
        start, end = shown.window
        assert WHOLE[0] <= start < end <= WHOLE[1]

    def test_a_finding_leads_to_its_gap_and_back_again(self, browser: Browser, address: str) -> None:
        shown = Timeline(browser, address, "#f-sync-1a2b")
        browser.value("document.querySelector('.finding button.show').click()")
        assert shown.gap != "" or shown.window != WHOLE
        found = browser.value("location.hash")
        assert found.startswith("#t=")
        assert browser.value("document.activeElement.className") == "lanes"
        browser.value("history.back()")
        browser.until("location.hash === '#f-sync-1a2b'")

    def test_a_row_of_the_table_leads_to_its_gap(self, browser: Browser, address: str) -> None:
        shown = Timeline(browser, address)
        browser.value("document.querySelectorAll('.gaps button.show')[3].click()")
        assert shown.gap == "0.106000000"


def test_the_minimap_moves_the_window(shown: Timeline) -> None:
    shown.keys("w")
    code = "(({left, top, width}) => [left, top, width])(document.querySelector('.minimap').getBoundingClientRect())"
    left, top, width = shown.browser.value(code)
    shown.browser.drag(left + width * 0.5, top + 10, left + width * 0.6)
    assert sum(shown.window) / 2 == pytest.approx(150 * MS, abs=MS / 2)
    shown.browser.click(left + width * 0.1, top + 10)
    assert shown.window == (90 * MS, 150 * MS)


class TestMetrics:
    def test_the_pointer_on_a_curve_tells_its_value(self, browser: Browser, tmp_path: Path) -> None:
        """A curve of 200 buckets of 500 µs: ten at nothing, ten at 71%, and so on; the last twenty hold no sample."""
        made = report([device(gpu_metrics=gpu_metrics())], [])
        levels = {"gpu0": timeline(*WHOLE)}
        shown = Timeline(browser, written(msgspec.structs.replace(made, timeline=levels), tmp_path))
        told = {}
        for bucket in (5, 15, 195):
            browser.mouse("mouseMoved", shown.x(90 * MS + (bucket + 0.5) * MS / 2), shown.y("metric"))
            told[bucket] = "" if browser.value("document.querySelector('.tip').hidden") else shown.text(".tip")
        assert told == {5: "SM active: 0.0%\nmean of 500 µs", 15: "SM active: 71.0%\nmean of 500 µs", 195: ""}


def test_a_new_theme_is_drawn(shown: Timeline) -> None:
    pixel = f"document.querySelector('canvas.lanes').getContext('2d').getImageData(800, {AXIS + 60}, 1, 1).data"
    brightness = f"Array.from({pixel}).slice(0, 3).reduce((sum, part) => sum + part)"
    light = shown.browser.value(brightness)
    shown.browser.value("document.querySelector('button.theme').click()")
    shown.browser.until(f"{brightness} < {light} / 2")
    shown.browser.value("document.querySelector('button.theme').click()")
    shown.browser.until(f"{brightness} === {light}")


def test_on_paper_there_is_the_drawing(shown: Timeline) -> None:
    shown.browser.media("print")
    looks = [f"getComputedStyle(document.querySelector('{name}')).display" for name in (".still", ".stage")]
    assert [shown.browser.value(look) for look in looks] == ["block", "none"]
    shown.browser.media("screen")


def test_without_scripts_there_is_the_drawing(chromium: Chromium, address: str) -> None:
    with Browser(chromium, scripts=False) as browser:
        browser.open(address)
        assert browser.value("document.querySelector('.still svg').getBoundingClientRect().height") > 0
        assert browser.value("document.querySelector('.stage').getBoundingClientRect().height") == 0
        assert browser.value("document.querySelectorAll('button.show:not([hidden])').length") == 0


def test_names_are_text(browser: Browser, tmp_path: Path) -> None:
    shown = Timeline(browser, written(SAMPLES["hostile"](), tmp_path))
    shown.browser.mouse("mouseMoved", shown.x(90.5 * MS), shown.y("stream"))
    assert "</script><script>alert(1)</script>" in shown.text(".tip")
    shown.browser.click(shown.x(sum(FIRST_GAP) / 2), shown.y("gaps"))
    assert HOSTILE[0] in shown.text(".gap-card")
    assert browser.value("document.querySelectorAll('b, img, iframe').length") == 0
    assert browser.console == []


def busy_page(count: int, folder: Path) -> str:
    """A stream with so many slices, one after another, over the whole run."""
    step = 100 * MS // count
    rows = [(at * step, step * 2 // 3, at % 2, at % 3) for at in range(count)]
    levels = timeline(*WHOLE, lanes=[lane("stream", rows, label="stream 7")])
    made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": levels})
    return written(made, folder, f"busy-{count}")


DRAWN = """(() => {
  const rects = CanvasRenderingContext2D.prototype.fillRect;
  let count = 0;
  CanvasRenderingContext2D.prototype.fillRect = function (...place) { count += 1; return rects.apply(this, place); };
  nsysdiagTimeline.draw();
  CanvasRenderingContext2D.prototype.fillRect = rects;
  const times = Array.from({length: 15}, () => {
    const start = performance.now();
    for (let i = 0; i < 4; i += 1) nsysdiagTimeline.draw();
    return performance.now() - start;
  });
  return [count, Math.min(...times)];
})()"""


CLEARS = 5_000
EMPTY = f"""(() => {{
  const times = Array.from({{length: 9}}, () => {{
    const start = performance.now();
    for (let i = 0; i < {CLEARS}; i += 1) nsysdiagTimeline.clear();
    return performance.now() - start;
  }});
  return Math.min(...times) / {CLEARS};
}})()"""
MOST_CLEARS = 10_000
"""As many empty canvases as one with 200,000 slices may cost: some 2,000 in fact, 100,000 if each slice were drawn."""


def test_slices_beyond_the_pixels_cost_next_to_nothing(browser: Browser, tmp_path: Path) -> None:
    """A hundred times the slices: one rectangle a pixel column at most, nowhere near a hundred times the time, and a
    small multiple of what an empty canvas costs."""
    found: dict[int, list[Any]] = {}
    for count in (2_000, 200_000):
        shown = Timeline(browser, busy_page(count, tmp_path))
        found[count] = browser.value(DRAWN)
    lanes = browser.value("nsysdiagTimeline.layout().items.length")
    assert found[200_000][0] <= lanes * (shown.box["width"] + 10)
    assert found[200_000][1] < 15 * max(found[2_000][1], 0.5)
    assert np.isfinite(found[200_000][1])
    assert found[200_000][1] / 4 < MOST_CLEARS * browser.value(EMPTY)
    # So do the marks of what is found, and a selected range.
    shown.search("gemm")
    shown.keys("r")
    assert shown.found == "100,000"
    assert browser.value(DRAWN)[0] <= found[200_000][0] + shown.box["width"] + 10
