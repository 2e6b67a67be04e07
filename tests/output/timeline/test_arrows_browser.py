"""The wake chain of a selected gap, drawn from the lanes of who woke to those of who was woken, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import Gap
from tests.output.browser import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DRAWN = """(() => {
  const painted = { dots: [], curves: [] };
  const own = CanvasRenderingContext2D.prototype;
  const { arc, bezierCurveTo, moveTo } = own;
  let at = [];
  own.moveTo = function (x, y) { at = [x, y]; return moveTo.call(this, x, y); };
  own.arc = function (x, y, ...more) { painted.dots.push([x, y]); return arc.call(this, x, y, ...more); };
  own.bezierCurveTo = function (...ends) {
    painted.curves.push([...at, ends[4], ends[5]]);
    return bezierCurveTo.call(this, ...ends);
  };
  nsysdiagTimeline.draw();
  Object.assign(own, { arc, bezierCurveTo, moveTo });
  return painted;
})()"""
INK = """(([x, y]) => {
  const context = document.querySelector('canvas.lanes').getContext('2d');
  const ratio = context.getTransform().a;
  const wanted = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim();
  const found = Array.from(context.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data).slice(0, 3);
  return '#' + found.map((part) => part.toString(16).padStart(2, '0')).join('') === wanted;
})"""
AT = """((y) => {
  const { items } = nsysdiagTimeline.layout();
  const lane = items.find((each) => y >= each.y && y < each.y + each.height);
  const threads = items.filter((each) => each.type === 'thread' && each.device === lane.device);
  return threads.find((each) => each.thread === lane.thread).label;
})"""


def longest_chain(demo: nsysdiag.Report) -> Gap:
    """The longest gap of the demo in which a worker of the data loader wakes the thread that launches."""
    return max(
        (gap for gap in demo.devices[0].gaps if gap.root and gap.root.hops), key=lambda gap: gap.end_ns - gap.start_ns
    )


def opened_at(browser: Browser, demo: nsysdiag.Report, folder: Path, *, selected: bool) -> dict[str, Any]:
    """What is painted of arrows around that gap."""
    gap = longest_chain(demo)
    page = folder / "page.html"
    page.write_bytes(FORMATS["html"].render(demo, RenderOptions()))
    window = f"t={gap.start_ns - 1_000_000}-{gap.end_ns + 1_000_000}"
    browser.open(f"{page.as_uri()}#{window}" + (f"&g=0.{gap.start_ns}" if selected else ""))
    browser.until("!!window.nsysdiagTimeline")
    painted: dict[str, Any] = browser.value(DRAWN)
    return painted


def test_arrows_lead_from_the_waker_to_the_one_that_waited(
    browser: Browser, demo: nsysdiag.Report, tmp_path: Path
) -> None:
    painted = opened_at(browser, demo, tmp_path, selected=True)
    assert len(painted["curves"]) == len(painted["dots"]) >= 1
    ends = [(browser.value(f"{AT}({start})"), browser.value(f"{AT}({end})")) for _, start, _, end in painted["curves"]]
    gap = longest_chain(demo)
    assert gap.root is not None
    assert gap.thread is not None
    waker, waiting = (f"{each.name} {each.tid}" for each in (gap.root.hops[0].thread, gap.thread))
    assert waker.startswith("pt_data_worker ")
    assert (waker, waiting) in ends
    assert all(browser.value(f"{INK}({dot})") for dot in painted["dots"])


def test_without_a_selection_there_are_none(browser: Browser, demo: nsysdiag.Report, tmp_path: Path) -> None:
    selected = opened_at(browser, demo, tmp_path, selected=True)
    painted = opened_at(browser, demo, tmp_path, selected=False)
    assert painted == {"dots": [], "curves": []}
    assert not any(browser.value(f"{INK}({dot})") for dot in selected["dots"])
