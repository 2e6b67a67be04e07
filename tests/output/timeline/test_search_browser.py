"""Search and selection on the timeline, in a real browser."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import nsysdiag
from nsysdiag.iterations.report import steady_steps
from tests.output.browser import Browser
from tests.output.samples import HOSTILE, MS, SAMPLES, device, report
from tests.output.timeline.driven import FIRST_GAP, PRESS, WHOLE, Timeline, written
from tests.output.timeline.samples import lane, timeline

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CURVES = """(() => {
  const own = CanvasRenderingContext2D.prototype;
  const { bezierCurveTo, moveTo } = own;
  const curves = [];
  let at = [];
  own.moveTo = function (x, y) { at = [x, y]; return moveTo.call(this, x, y); };
  own.bezierCurveTo = function (...ends) {
    curves.push([at, ends.slice(4)]);
    return bezierCurveTo.call(this, ...ends);
  };
  nsysdiagTimeline.draw();
  Object.assign(own, { bezierCurveTo, moveTo });
  return curves;
})()"""
SELECTED = "(({lane, at}) => [lane.kind, lane.rows.start[at]])(nsysdiagTimeline.selection())"


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three launches of a kernel, two of them by the one call; the second one ends the first gap."""
    rows = [(0, MS, 0, 0), (FIRST_GAP[1] - WHOLE[0], MS, 0, 0), (20 * MS, MS, 0, 0), (30 * MS, MS, 1, 2)]
    lanes = [
        lane(
            "stream",
            rows,
            label="stream 7",
            amounts=[3840, 3840, 0, 4 << 20],
            blocks_of=[256, 256, 0, 0],
            launches=[0, 1, 1, 0],
        ),
        lane("nvtx", [(0, 4 * MS, 2, 0)], thread=0),
        lane("api", [(MS, MS, 3, 0)], thread=0),
    ]
    made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": timeline(*WHOLE, lanes=lanes)})
    return written(made, tmp_path_factory.mktemp("repeated"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [("GEMM", "stream"), ("memcpy", "stream"), ("step 0", "nvtx"), ("launchk", "api"), ("float", "stream")],
)
def test_names_are_found_by_a_part(text: str, kind: str, shown: Timeline) -> None:
    shown.search(text)
    assert shown.found == "1"
    shown.browser.key("Enter")
    assert shown.found == "1 of 1"
    assert shown.browser.value(SELECTED)[0] == kind


def test_causes_of_gaps_are_found(shown: Timeline) -> None:
    shown.search("host comp")
    count = int(shown.found.replace(",", ""))
    assert count == shown.browser.value(
        "nsysdiagTimeline.devices[0].gaps.kinds.filter((kind) => kind === "
        "nsysdiagTimeline.causes.findIndex((cause) => cause.title === 'Host computing')).length"
    )
    shown.browser.key("Enter")
    assert "Host computing" in shown.text(".gap-card")
    assert shown.gap != ""


def test_nothing_found_is_said(shown: Timeline) -> None:
    shown.search("no such thing")
    assert shown.found == "no match"
    shown.browser.key("Enter")
    assert shown.browser.value("nsysdiagTimeline.selection()") is None


class TestSteps:
    def test_keys_go_from_match_to_match(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        shown.search("gemm")
        assert shown.found == "3"
        browser.key("Enter")
        assert browser.value(SELECTED) == ["stream", 0]
        shown.keys("n")
        assert shown.found == "2 of 3"
        shown.keys("n", "n")  # after the last one the first
        assert shown.found == "1 of 3"
        shown.keys("Shift+N")
        assert shown.found == "3 of 3"
        assert browser.value(SELECTED) == ["stream", 20 * MS]

    def test_from_the_window_on(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated, "#t=105000000-190000000")
        shown.search("gemm")
        browser.key("Enter")
        assert shown.found == "3 of 3"

    def test_escape_deselects_then_ends_the_search(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        shown.search("gemm")
        for key in ("Enter", "Escape"):
            browser.key(key)
        assert browser.value("document.activeElement.className") == "lanes"
        shown.keys("Escape")
        assert browser.value("nsysdiagTimeline.selection()") is None
        assert shown.found == "1 of 3"
        shown.keys("Escape")
        assert shown.found == ""
        shown.keys("n")  # the next gap again
        assert shown.gap != ""

    def test_the_list_of_names_leads_to_each(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        shown.search("m")
        rows = shown.text(".search-list").split("\n")
        assert "gemm<float>(int)" in rows
        assert "GPU, 3 ×, 3.00 ms" in rows
        buttons = "Array.from(document.querySelectorAll('.search-list button'))"
        for start in (0, FIRST_GAP[1] - WHOLE[0], 20 * MS, 0):
            browser.value(f"{buttons}.find((each) => each.title.includes('gemm')).click()")
            assert browser.value(SELECTED) == ["stream", start]


def test_names_that_differ_by_numbers_are_one_row_where_there_are_many(browser: Browser, tmp_path: Path) -> None:
    names = ["(name left out)", *(f"aten::add, seq = {number}" for number in range(20)), "gemm"]
    rows = [(at * MS, MS // 2, at + 1, 0) for at in range(21)]
    levels = timeline(*WHOLE, names=names, lanes=[lane("stream", rows, label="stream 7")])
    made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": levels})
    shown = Timeline(browser, written(made, tmp_path))
    shown.search("a")
    assert shown.text(".search-list").split("\n")[:2] == ["aten::add, seq = #", "GPU, 20 ×, 10.0 ms"]
    shown.search("seq = 1")
    assert shown.text(".search-list").split("\n")[::2][:2] == ["aten::add, seq = 1", "aten::add, seq = 10"]


class TestAddress:
    def test_a_search_comes_back(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        shown.search("gemm")
        browser.key("Enter")
        browser.until("location.hash.includes('&s=0.0.90000000') && location.hash.includes('q=gemm')")
        again = Timeline(browser, repeated, browser.value("location.hash"))
        assert again.found == "3"
        assert browser.value(SELECTED) == ["stream", 0]

    @pytest.mark.parametrize(
        "link", ["#t=90000000-94000000&s=9.9.1", "#s=0.0.90000000", "#t=90000000-94000000&s=0.99.90000000"]
    )
    def test_a_link_to_nothing_does_no_harm(self, link: str, browser: Browser, repeated: str) -> None:
        Timeline(browser, repeated, link)
        assert browser.value("nsysdiagTimeline.selection()") is None
        assert browser.console == []


def test_a_slash_in_a_field_is_text(shown: Timeline) -> None:
    shown.search("a")
    shown.browser.key("/")
    assert shown.browser.value("document.querySelector('.search-text').value") == "a/"


class TestKernel:
    def test_a_click_tells_where_it_waits(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        browser.click(shown.x(90.5 * MS), shown.y("stream"))
        card = shown.text(".gap-card")
        assert "gemm<float>(int) · stream 7, gpu0" in card
        assert "1 of 3 times, 400 µs in all; longest: 400 µs" in card.replace("\n", " ")
        browser.value("document.querySelector('.gap-card dd button').click()")
        assert shown.gap == f"0.{FIRST_GAP[0]}"

    def test_a_click_on_the_sum_of_streams_selects_the_operation(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        browser.click(shown.x(120.5 * MS), shown.y("copies"))
        assert browser.value(SELECTED) == ["stream", 30 * MS]

    def test_a_call_has_its_ranges(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        browser.click(shown.x(91.5 * MS), shown.y("api"))
        card = shown.text(".gap-card")
        assert "cudaLaunchKernel · CUDA calls, python 4242" in card
        assert "step 0" in card


class TestLaunch:
    SECOND = f"#t=90000000-190000000&s=0.0.{FIRST_GAP[1]}"

    def test_an_operation_has_grid_launch_and_range(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated, self.SECOND)
        card = shown.text(".gap-card").replace("\n", " ")
        assert "3,840 blocks of 256 threads" in card
        assert "cudaLaunchKernel, python 4242, 9.40 ms before it starts" in card
        assert "step 0" in card
        browser.value(PRESS.format("Show"))
        assert browser.value(SELECTED) == ["api", MS]

    def test_what_is_not_known_is_not_told(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated, "#t=90000000-190000000&s=0.0.90000000")
        card = shown.text(".gap-card")
        assert "not among the calls on this page" in card
        shown = Timeline(browser, repeated, f"#t=90000000-190000000&s=0.0.{WHOLE[0] + 20 * MS}")
        assert "Grid" not in shown.text(".gap-card")

    def test_an_arrow_leads_from_the_call(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated, self.SECOND)
        drawn = browser.value(CURVES)
        assert len(drawn) == 1
        (x, y), (end, top) = drawn[0]
        assert x == pytest.approx(shown.x(91 * MS) - shown.box["left"], abs=0.01)
        assert end == pytest.approx(shown.x(FIRST_GAP[1]) - shown.box["left"], abs=0.01)
        item = "nsysdiagTimeline.layout().items.find((item) => item.type === '{}')"
        assert y == browser.value(f"{item.format('api')}.y")
        assert top > browser.value(f"{item.format('stream')}.y")

    def test_a_copy_has_bytes_and_rate(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated, f"#t=90000000-190000000&s=0.0.{WHOLE[0] + 30 * MS}")
        assert "4,194,304 (4.00 MiB), 4.19 GB/s" in shown.text(".gap-card")
        shown.keys("r")
        assert shown.tables["Copies and sets"] == [["memcpy HtoD", "1.00 ms", "100.0%", "1", "4.00 MiB", "4.19 GB/s"]]

    def test_a_range_says_what_it_launched(self, browser: Browser, repeated: str) -> None:
        shown = Timeline(browser, repeated)
        shown.search("step 0")
        browser.key("Enter")
        told = f"2 operations launched in it: 2.00 ms busy, {(20 * MS + MS - FIRST_GAP[1] + WHOLE[0]) / MS:.1f} ms from"
        assert told in shown.text(".gap-card")


def test_steps_are_found_by_number(browser: Browser, demo: nsysdiag.Report, tmp_path: Path) -> None:
    shown = Timeline(browser, written(demo, tmp_path))
    assert demo.devices[0].iterations is not None
    steps = steady_steps(demo.devices[0].iterations)
    assert steps is not None
    at = len(steps.number) // 2
    shown.search(f"step {steps.number[at]}")
    browser.value("document.querySelectorAll('.search-list button')[0].click()")
    row = "({device, lane: {rows}, at}) => [device.key, rows.start[at], rows.end[at]]"
    spans = browser.value(f"nsysdiagTimeline.search.found.filter((each) => each.lane).map({row})")
    origin = int(browser.value("document.querySelector('canvas.lanes').dataset.from")) - browser.value(
        "nsysdiagTimeline.view.from"
    )
    wanted = [steps.spans.start[at] - origin, steps.spans.end[at] - origin]
    assert ["gpu0", *(float(each) for each in wanted)] in spans
    assert "Copies and sets" in shown.tables


def test_gaps_by_length(shown: Timeline) -> None:
    lengths = []
    for _each in range(4):
        shown.keys("i")
        lengths.append(
            shown.browser.value(
                "(({device, at}) => device.gaps.end[at] - device.gaps.start[at])(nsysdiagTimeline.selection())"
            )
        )
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == shown.browser.value(
        "(({end, start}) => Math.max(...end.map((each, at) => each - start[at])))(nsysdiagTimeline.devices[0].gaps)"
    )
    before = shown.gap
    shown.keys("i", "Shift+I")
    assert shown.gap == before


def test_help(shown: Timeline) -> None:
    shown.keys("?")
    assert shown.browser.value("document.querySelector('.stage-keys').open")
    shown.keys("?")
    assert not shown.browser.value("document.querySelector('.stage-keys').open")


def test_what_is_found_is_text(browser: Browser, tmp_path: Path) -> None:
    shown = Timeline(browser, written(SAMPLES["hostile"](), tmp_path))
    shown.search("script")
    browser.key("Enter")
    assert "</script><script>alert(1)</script>" in shown.text(".gap-card") + shown.text(".search-list")
    assert HOSTILE[0] != ""
    assert browser.value("document.querySelectorAll('b, img, iframe').length") == 0
    assert browser.console == []


class TestOverlapping:
    """
    ```
    ms        0    1    2    3    4    5    6
    track 0   [gemm ----------)  [memcpy ---)
    track 1        [memcpy)[gemm -----)
    ```
    """

    @pytest.fixture
    def shown(self, browser: Browser, tmp_path: Path) -> Timeline:
        rows = [(0, 3 * MS, 0, 0), (MS, MS, 1, 2), (2 * MS, 2 * MS, 0, 0), (int(3.5 * MS), 2 * MS, 1, 2)]
        levels = timeline(*WHOLE, lanes=[lane("stream", rows, label="2 other streams")])
        made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": levels})
        return Timeline(browser, written(made, tmp_path), "#t=90000000-96000000")

    def test_none_is_drawn_across_another(self, shown: Timeline) -> None:
        tracks = shown.browser.value(
            "nsysdiagTimeline.layout().items.filter((item) => item.type === 'stream')"
            ".map(({rows}) => Array.from(rows.start, (start, at) => [start, rows.end[at]]))"
        )
        assert tracks == [[[0, 3 * MS], [3.5 * MS, 5.5 * MS]], [[MS, 2 * MS], [2 * MS, 4 * MS]]]

    def test_each_can_be_picked(self, shown: Timeline) -> None:
        below = shown.y("stream") + 17
        shown.browser.mouse("mouseMoved", shown.x(92.5 * MS), below)
        assert "2,000,000 ns" in shown.text(".tip")
        shown.browser.click(shown.x(92.5 * MS), below)
        assert shown.browser.value(SELECTED) == ["stream", 2 * MS]
        shown.browser.click(shown.x(92.5 * MS), shown.y("stream"))
        assert shown.browser.value(SELECTED) == ["stream", 0]
