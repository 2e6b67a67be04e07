"""The charts in a real browser: still without scripts, and figures in their place once they are near the view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.html.assets import plotly
from tests.output.browser import Browser, Chromium
from tests.output.samples import SAMPLES

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIVE = "document.querySelectorAll('.chart.live').length"
ALL = "document.querySelectorAll('.chart').length"
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def write(folder: Path, sample: str) -> str:
    """The address of the sample's page."""
    path = folder / f"{sample}.html"
    path.write_bytes(FORMATS["html"].render(SAMPLES[sample](), RenderOptions()))
    return path.as_uri()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("charts")


@pytest.fixture(scope="module")
def running(chromium: Chromium) -> Iterator[Browser]:
    with Browser(chromium) as browser:
        yield browser


@pytest.fixture
def browser(running: Browser) -> Browser:
    running.console.clear()
    running.requests.clear()
    running.size(1440, 1000)
    return running


def go_to(browser: Browser, section: str) -> None:
    """Unfold a section, scroll to it and wait for its figure."""
    browser.value("document.documentElement.style.scrollBehavior = 'auto', 0")
    browser.value(f"document.querySelectorAll('#{section} > .fold').forEach((each) => {{ each.open = true; }}), 0")
    browser.value(f"document.getElementById('{section}').scrollIntoView(), 0")
    browser.until(f"document.querySelector('#{section} .chart.live .main-svg') !== null")


def box(browser: Browser, selector: str) -> tuple[float, float, float, float]:
    """Left, top, width and height of an element in the window."""
    code = f"(r => [r.x, r.y, r.width, r.height])(document.querySelector('{selector}').getBoundingClientRect())"
    left, top, width, height = browser.value(code)
    return left, top, width, height


def test_figures_come_when_they_are_near_and_nothing_complains(browser: Browser, folder: Path) -> None:
    address = write(folder, "one_device")
    browser.size(1440, 300)
    browser.open(address)
    assert browser.value(LIVE) == 0
    assert browser.value("typeof window.Plotly") == "undefined"
    assert browser.value(ALL) == 4
    for section in ("ledger", "iterations", "gap-lengths", "kernels"):
        go_to(browser, section)
    assert browser.value(LIVE) == 4
    assert browser.value("Plotly.version") == plotly().version
    assert browser.value("document.querySelectorAll('[aria-hidden=true] [tabindex], .modebar').length") == 0
    assert browser.console == []
    assert browser.requests == [address]


def test_a_figure_has_the_place_of_its_drawing(browser: Browser, folder: Path) -> None:
    browser.open(write(folder, "one_device"))
    browser.value("window.before = Array.from(document.querySelectorAll('.chart'), c => c.offsetHeight), 0")
    for section in ("ledger", "iterations", "gap-lengths", "kernels"):
        go_to(browser, section)
    assert browser.value("Array.from(document.querySelectorAll('.chart'), c => c.offsetHeight)") == browser.value(
        "before"
    )
    # Readers of the screen still have the drawing with its description.
    drawn = "document.querySelector('#iterations .drawn')"
    assert browser.value(f"{drawn}.querySelector('svg[role=img]').getAttribute('aria-label')").startswith(
        "Length of 20"
    )
    assert browser.value(f"getComputedStyle({drawn}).display") == "block"
    assert browser.value(f"{drawn}.closest('[aria-hidden]')") is None


def test_paper_gets_the_drawings(browser: Browser, folder: Path) -> None:
    browser.open(write(folder, "one_device"))
    go_to(browser, "iterations")
    browser.media("print")
    try:
        assert browser.value("document.querySelector('#iterations .drawn').offsetHeight") > 100
        assert browser.value("document.querySelector('#iterations .figure-place').offsetHeight") == 0
    finally:
        browser.media("screen")


def test_the_pointer_shows_exact_values(browser: Browser, folder: Path) -> None:
    browser.open(write(folder, "one_device"))
    go_to(browser, "iterations")
    left, top, width, height = box(browser, "#iterations .figure-place .draglayer .nsewdrag")
    browser.mouse("mouseMoved", left + width * 6.5 / 20, top + height / 2)
    browser.until("document.querySelector('#iterations .hoverlayer .legend') !== null")
    told = browser.value("document.querySelector('#iterations .hoverlayer').textContent")
    assert "#6" in told
    assert "5,000,000 ns, slow" in told
    assert "0.700000 ms" in told


def test_the_legend_hides_bars(browser: Browser, folder: Path) -> None:
    browser.open(write(folder, "one_device"))
    go_to(browser, "gap-lengths")
    browser.until("document.querySelector('#gap-lengths figcaption button') !== null")
    bars = "document.querySelectorAll('#gap-lengths .figure-place .point').length"
    before = browser.value(bars)
    browser.value("document.querySelector('#gap-lengths figcaption button').click(), 0")
    browser.until(f"{bars} < {before}")
    assert browser.value("document.querySelector('#gap-lengths figcaption button').ariaPressed") == "false"
    assert browser.console == []


def test_colours_follow_the_theme(browser: Browser, folder: Path) -> None:
    browser.dark(on=False)
    browser.open(write(folder, "one_device"))
    go_to(browser, "kernels")
    fill = "getComputedStyle(document.querySelector('#kernels .figure-place .point path')).fill"
    assert browser.value(fill) == "rgb(43, 108, 184)"
    browser.value("document.querySelector('button.theme').click(), 0")
    browser.until(f"{fill} === 'rgb(106, 165, 234)'")
    browser.value("document.querySelector('button.theme').click(), localStorage.clear(), 0")
    browser.until(f"{fill} === 'rgb(43, 108, 184)'")


def test_names_are_text(browser: Browser, folder: Path) -> None:
    """A cause with markup for a name is read letter by letter, and brings no element."""
    name = """<b>x</b><a href="http://a">%{x}</a>&amp;"q" $y$ <br>"""
    made = SAMPLES["one_device"]()
    causes = [msgspec.structs.replace(cause, title=name) if cause.id == "sync" else cause for cause in made.causes]
    path = folder / "names.html"
    path.write_bytes(FORMATS["html"].render(msgspec.structs.replace(made, causes=causes), RenderOptions()))
    browser.open(path.as_uri())
    go_to(browser, "ledger")
    left, top, width, _height = box(browser, "#ledger .figure-place .nsewdrag")
    browser.mouse("mouseMoved", left + width / 20, top + 37)
    browser.until("document.querySelector('#ledger .hovertext') !== null")
    assert browser.value("document.querySelector('#ledger .hovertext .nums').textContent").startswith(name)
    go_to(browser, "iterations")
    left, top, width, height = box(browser, "#iterations .figure-place .nsewdrag")
    browser.mouse("mouseMoved", left + width * 6.5 / 20, top + height / 2)
    browser.until("document.querySelector('#iterations .hoverlayer .legend') !== null")
    assert name in browser.value("document.querySelector('#iterations .hoverlayer').textContent")
    assert browser.value("document.querySelectorAll('.figure-place a, .figure-place img, .figure-place b').length") == 0
    assert browser.console == []
    assert browser.requests == [path.as_uri()]


def test_a_damaged_bundle_leaves_the_drawings(browser: Browser, folder: Path) -> None:
    page = FORMATS["html"].render(SAMPLES["one_device"](), RenderOptions())
    damaged = folder / "damaged.html"
    damaged.write_bytes(page.replace(plotly().packed[500:600].encode(), b""))
    browser.open(damaged.as_uri())
    browser.value("document.getElementById('ledger').scrollIntoView(), 0")
    browser.value("new Promise(done => setTimeout(() => requestIdleCallback(() => setTimeout(done, 300)), 100))")
    assert browser.value(LIVE) == 0
    assert browser.value("document.querySelector('#ledger .drawn svg').getBoundingClientRect().width") > 500


def test_without_scripts_the_drawings_are_seen(chromium: Chromium, folder: Path) -> None:
    address = write(folder, "one_device")
    with Browser(chromium, scripts=False) as browser:
        browser.open(address)
        heights = "Array.from(document.querySelectorAll('.drawn'), d => d.getBoundingClientRect().height)"
        assert browser.value(heights) == [128, 196, 288, 154]
        assert browser.value(LIVE) == 0
