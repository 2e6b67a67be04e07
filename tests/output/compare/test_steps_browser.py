"""The steps of both sides in a real browser: one window for both, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show.registry import RENDERERS
from nsysdiag.comparison.step_facts import AlignedSteps
from nsysdiag.formats import RenderOptions
from tests.output.browser import Chromium
from tests.output.compare_samples import comparison, device
from tests.output.reader import Reader
from tests.output.step_samples import US, packed, side

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LENGTH = 1052 * US


class Steps(Reader):
    """The page of a comparison, at its steps."""

    def begin(self) -> None:
        self.start()
        self.value("nsysdiagSteps.then((all) => { window.steps = all[0]; })")
        self.value("document.querySelector('.steps').scrollIntoView({behavior: 'instant'})")

    def place(self, type: str, side: str, ns: float) -> tuple[float, float]:
        """Where a moment of a lane is in the window of the browser."""
        item = f"steps.layout.items.find((item) => item.type === '{type}' && item.side === {side!r})"
        box = "document.querySelector('canvas.lanes').getBoundingClientRect()"
        code = f"(({{left, top}}, {{y, height}}) => [left + steps.view.x({ns}), top + y + height / 2])({box}, {item})"
        x, y = self.value(code)
        return float(x), float(y)

    def hover(self, type: str, side: str, ns: float) -> str:
        self.mouse("mouseMoved", *self.place(type, side, ns))
        return self.tip

    @property
    def tip(self) -> str:
        """What the box beside the pointer says; empty where it is hidden."""
        shown = "(({hidden, children}) => hidden ? '' : Array.from(children, (each) => each.textContent).join('; '))"
        return str(self.value(f"{shown}(document.querySelector('.steps .tip'))"))

    @property
    def window(self) -> tuple[int, int]:
        data = self.value("(({from, to}) => [from, to])(document.querySelector('.steps canvas').dataset)")
        return int(data[0]), int(data[1])

    @property
    def step(self) -> str:
        return str(self.value("document.querySelector('.steps canvas').dataset.step"))


def opened(chromium: Chromium, folder: Path, made: Comparison, **more: Any) -> Steps:
    page = Steps(chromium, **more)
    page.file = folder / "page.html"
    page.file.write_bytes(RENDERERS["html"](made, RenderOptions()))
    return page


@pytest.fixture
def page(chromium: Chromium, tmp_path: Path) -> Iterator[Steps]:
    with opened(chromium, tmp_path, comparison()) as made:
        made.begin()
        yield made
        assert made.console == []


def test_the_typical_step_is_shown_first_with_both_lengths(page: Steps) -> None:
    assert page.step == "0"
    assert page.window == (0, LENGTH)
    assert page.text(".steps .stage-now").startswith("1.05 ms → 777 µs (−275 µs)")
    assert page.value("document.querySelector('.steps select').selectedOptions[0].textContent") == (
        "Typical step (3 before, 4 after)"
    )


def test_the_next_and_the_previous_step_move_both_sides(page: Steps) -> None:
    page.click_on(".steps button[data-do=next]")
    assert page.step == "1"
    assert page.value("[steps.pairs[1].before.number, steps.pairs[1].after.number]") == [5, 5]
    page.choose(".steps select", "2")
    assert page.step == "2"
    page.value("document.querySelector('.steps canvas').focus()")
    page.key("n")
    assert page.step == "2"
    page.key("p")
    assert page.step == "1"


def test_operations_of_both_sides_have_one_scale(page: Steps) -> None:
    """The second kernel begins 750 µs into the step before and 360 µs into the one after."""
    both = "relu_gemm; before: 302,000 ns, from 750 µs; after: 417,000 ns, from 360 µs"
    assert page.hover("stream", "before", 760 * US) == f"{both}; shorter on this side"
    assert page.hover("stream", "after", 370 * US) == f"{both}; longer on this side"


def test_what_one_side_has_alone_and_idle_time_are_told(page: Steps) -> None:
    assert page.hover("stream", "before", 20 * US) == (
        "memcpy HtoD; before: 50,000 ns, from 0 ns; after: none; only on this side"
    )
    assert page.hover("idle", "after", 330 * US).startswith("Idle: Host code; before: 400,000 ns, from 350 µs")
    assert "only on this side" in page.hover("differs", "before", 20 * US)
    assert page.hover("differs", "after", 100 * US) == ""


def test_the_line_between_says_how_late_the_side_after_is(page: Steps) -> None:
    """The first kernel begins 50 µs earlier; the wait is 340 µs shorter; the second kernel takes 115 µs longer."""
    assert page.value("steps.pairs[0].behind.time") == [0, 0, 300 * US, 360 * US, 777 * US, 777 * US]
    assert page.value("steps.pairs[0].behind.ns") == [each * US for each in (0, -50, -50, -390, -275, -275)]
    item = "steps.layout.items.find((item) => item.type === 'behind')"
    box = page.value(
        f"(({{left, top}}) => [left + steps.view.x({400 * US}), top + {item}.y + 20])"
        "(document.querySelector('canvas.lanes').getBoundingClientRect())"
    )
    page.mouse("mouseMoved", *box)
    assert page.tip.startswith("After is 390 µs earlier")


def test_the_keys_zoom_and_move_and_the_box_beside_the_pointer_goes(page: Steps) -> None:
    assert page.hover("stream", "before", 100 * US)
    page.value("document.querySelector('.steps canvas').focus()")
    page.key("w")
    assert page.tip == ""
    low, high = page.window
    assert high - low < 0.7 * LENGTH
    page.key("d")
    assert page.window[0] > low
    page.key("0")
    assert page.window == (0, LENGTH)


def test_the_wheel_zooms_around_the_pointer(page: Steps) -> None:
    x, y = page.place("stream", "after", 360 * US)
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
    page.until(f"Number(document.querySelector('.steps canvas').dataset.to) < {LENGTH}")
    low, high = page.window
    assert low < 360 * US < high
    assert page.place("stream", "after", 360 * US)[0] == pytest.approx(x, abs=1)


def test_a_difference_after_the_other(page: Steps) -> None:
    page.value("document.querySelector('.steps canvas').focus()")
    said = []
    for _press in range(5):
        page.key("]")
        said.append(page.tip.partition(";")[0])
    assert said == ["memcpy HtoD", "Idle: Host code", "Idle: Synchronization", "relu_gemm", "relu_gemm"]
    page.key("[")
    assert page.tip.startswith("relu_gemm")


def test_a_drag_moves_and_a_double_click_zooms_to_an_operation(page: Steps) -> None:
    x, y = page.place("stream", "after", 200 * US)
    for clicks in (1, 2):
        page.mouse("mousePressed", x, y, clickCount=clicks)
        page.mouse("mouseReleased", x, y, clickCount=clicks)
    page.until("Number(document.querySelector('.steps canvas').dataset.to) === 450000")
    low, _high = page.window
    page.drag(x, y, x - 80)
    assert page.window[0] > low


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("width", [390, 1440])
def test_it_fits_and_is_drawn_in_light_and_dark(width: int, chromium: Chromium, tmp_path: Path) -> None:
    with opened(chromium, tmp_path, comparison(), width=width) as shown:
        shown.dark(on=False)
        shown.begin()
        assert shown.value("document.documentElement.scrollWidth") <= width
        ground = "Array.from(steps.canvas.getContext('2d').getImageData(%d, %d, 1, 1).data.slice(0, 3))"
        y = shown.value("steps.layout.items.find((item) => item.type === 'stream').y + 2")
        x = shown.value(f"Math.round(steps.view.x({100 * US}))")
        shown.value("steps.draw()")
        light = shown.value(ground % (x, y))
        shown.dark(on=True)
        shown.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
        assert shown.value(ground % (x, y)) != light


def test_without_scripts_the_table_says_it(chromium: Chromium, tmp_path: Path) -> None:
    with opened(chromium, tmp_path, comparison(), scripts=False) as shown:
        shown.open(shown.file.as_uri())
        assert shown.value("document.querySelector('.steps .stage').getBoundingClientRect().height") == 0
        assert shown.value("document.querySelector('.steps .still').getBoundingClientRect().height") > 0
        assert shown.value("document.querySelectorAll('#timelines table tbody tr').length") == 5


def many(count: int) -> AlignedSteps:
    """Two steps of so many operations, all of the same name, in the same time."""
    each = LENGTH // count
    columns = {
        "apart": [0] * count,
        "lengths": [each] * count,
        "names": [0] * count,
        "stream": [0] * count,
        "marks": [at % 4 for at in range(count)],
        "causes": [1],
        "idle_marks": [0],
    }
    found = device().steps
    assert found is not None
    return replace(
        found,
        before=side([1], 1052, columns, ["stream 7"]),
        after=side([1], 1052, columns, ["stream 7"]),
        matched=[count],
        places_before=packed(0, *[2] * (count - 1)),
        places_after=packed(0, *[2] * (count - 1)),
        front=packed(*[1] * count),
        idle_matched=[0],
        idle_before="",
        idle_after="",
    )


RECTANGLES = """(() => {
  const own = CanvasRenderingContext2D.prototype;
  const [rects, lines] = [own.fillRect, own.lineTo];
  let count = 0;
  own.fillRect = function (...place) { count += 1; return rects.apply(this, place); };
  own.lineTo = function (...place) { count += 1; return lines.apply(this, place); };
  steps.draw();
  Object.assign(own, { fillRect: rects, lineTo: lines });
  return count;
})()"""


def test_operations_beyond_the_pixels_are_not_drawn_one_by_one(chromium: Chromium, tmp_path: Path) -> None:
    found = {}
    for count in (1_000, 50_000):
        with opened(chromium, tmp_path, comparison([replace(device(), steps=many(count))])) as shown:
            shown.begin()
            found[count] = shown.value(RECTANGLES)
            width = shown.value("steps.view.width")
    assert found[50_000] <= 20 * width
