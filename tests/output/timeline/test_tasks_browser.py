"""Questions of an engineer, answered on the page of a trace in a real browser, and checked against the file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from nsysdiag.iterations.report import steady_steps
from nsysdiag.report import Report
from tests.builder import TraceBuilder
from tests.ledger.traces import DRAWN, report_of
from tests.output.browser import Browser
from tests.output.timeline.driven import PRESS, Timeline, written
from tests.timeline.test_more_lanes import offloading

pytestmark = [pytest.mark.browser, pytest.mark.slow]
US = 1_000
STEPS, LAYERS, STEP = 20, 10, 4_000
UP, DOWN = 1 << 20, 1 << 12
LONG = 12


def training() -> TraceBuilder:
    """
    ```
    one step of 4 ms
    NVTX    [layer 0)[layer 1)[layer 2)  ...  [layer 9)
    gpu     [copy up, 1 MiB)[gemm ..)[gemm ..)  ...  [gemm ..)[copy down, 4 KiB)     idle
    ```
    Step 12 copies four times as much. Each layer launches two kernels: 100 us, and 50 us of reduce, which always waits
    for 20 us.
    """
    trace = TraceBuilder(schema="3.13.2")
    for step in range(STEPS):
        begin = (1_000 + step * STEP) * US
        size = UP * (4 if step == LONG else 1)
        trace.memcpy(begin, begin + 100 * US, size=size, launch=(begin - 60 * US, begin - 50 * US))
        trace.nvtx("step", begin - 65 * US, begin + (STEP - 100) * US)
        for layer in range(LAYERS):
            at = begin + (150 + 200 * layer) * US
            trace.nvtx(f"layer {layer}", at - 40 * US, at - 5 * US)
            trace.kernel(at, at + 100 * US, name="gemm", launch=(at - 35 * US, at - 30 * US))
            trace.kernel(at + 120 * US, at + 170 * US, name="reduce", launch=(at - 20 * US, at - 15 * US))
        end = begin + (150 + 200 * LAYERS) * US
        trace.memcpy(end, end + 20 * US, size=DOWN, kind="DtoH", launch=(end - 60 * US, end - 50 * US))
    return trace


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(training(), tmp_path_factory.mktemp("training"), DRAWN)


@pytest.fixture(scope="module")
def address(trained: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(trained, tmp_path_factory.mktemp("page"))


def test_which_copies_run_in_step_12_and_how_many_bytes(browser: Browser, trained: Report, address: str) -> None:
    found = trained.devices[0].iterations
    steps = steady_steps(found) if found is not None else None
    assert steps is not None
    assert LONG in steps.number
    shown = Timeline(browser, address)
    shown.search(f"step {LONG}")
    browser.key("Enter")
    copies = {row[0]: row[3:5] for row in shown.tables["Copies and sets"]}
    assert copies == {"memcpy HtoD": ["1", "4.00 MiB"], "memcpy DtoH": ["1", "4.00 KiB"]}


def test_where_else_does_this_kernel_wait(browser: Browser, address: str) -> None:
    shown = Timeline(browser, address)
    shown.search("reduce")
    browser.key("Enter")
    told = f"{STEPS * LAYERS} of {STEPS * LAYERS} times, 4.00 ms in all; longest:"
    assert told in shown.text(".gap-card")
    browser.value(PRESS.format("20.0 µs"))
    length = "(({device, at}) => device.gaps.end[at] - device.gaps.start[at])(nsysdiagTimeline.selection())"
    assert browser.value(length) == 20 * US


def test_how_long_is_layer_7_on_the_gpu(browser: Browser, address: str) -> None:
    shown = Timeline(browser, address)
    shown.search("layer 7")
    browser.key("Enter")
    assert "2 operations launched in it: 150 µs busy, 170 µs from the first to the last" in shown.text(".gap-card")


def test_a_name_of_the_headline_finds_its_kernel(browser: Browser, address: str) -> None:
    """Also one that is cut there, with its mark."""
    shown = Timeline(browser, address)
    for name in ("gemm", "gem…"):
        shown.search(name)
        assert shown.found == str(STEPS * LAYERS)


def test_which_source_line_offloads(browser: Browser, tmp_path: Path) -> None:
    """The line of a directive is on the page, is found, and says what it launched and where."""
    shown = Timeline(browser, written(report_of(offloading(), tmp_path, DRAWN), tmp_path))
    shown.search("test.f90:55")
    assert shown.found == "2"
    browser.key("Enter")
    assert "Compute construct at test.f90:55" in shown.text(".gap-card")
    assert browser.value("nsysdiagTimeline.layout().items.filter(({type}) => type === 'openacc').length") == 2


def test_the_next_important_gap(browser: Browser, address: str) -> None:
    """Half of the idle time is between steps: gaps within them are passed over, in order of time."""
    shown = Timeline(browser, address)
    starts = []
    for _each in range(3):
        shown.keys("j")
        starts.append(browser.value("(({device, at}) => device.gaps.start[at])(nsysdiagTimeline.selection())"))
    assert [after - before for before, after in pairwise(starts)] == [STEP * US, STEP * US]
    shown.keys("k")
    assert browser.value("(({device, at}) => device.gaps.start[at])(nsysdiagTimeline.selection())") == starts[1]
