"""The timeline of a page in a real browser, driven from a test. The run of the sample lasts from 90 to 190 ms."""

from __future__ import annotations

from pathlib import Path

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import Report
from tests.output.browser import Browser
from tests.output.samples import MS

WHOLE = (90 * MS, 190 * MS)
FIRST_GAP = (100 * MS, 100 * MS + 400_000)
PRESS = "Array.from(document.querySelectorAll('.gap-card button')).find((each) => each.innerText === '{}').click()"
"""A button of the card, by its text."""


def written(made: Report, folder: Path, name: str = "page") -> str:
    path = folder / f"{name}.html"
    path.write_bytes(FORMATS["html"].render(made, RenderOptions()))
    return path.as_uri()


class Timeline:
    """The timeline of the page that a browser shows."""

    def __init__(self, browser: Browser, address: str, link: str = "") -> None:
        self.browser = browser
        browser.console.clear()
        browser.requests.clear()
        browser.open(address + link)
        browser.until("!!window.nsysdiagTimeline")
        self.look()

    def look(self) -> None:
        self.browser.value("document.querySelector('.minimap').scrollIntoView({behavior: 'instant'})")

    @property
    def box(self) -> dict[str, float]:
        box = "document.querySelector('canvas.lanes').getBoundingClientRect()"
        found: dict[str, float] = self.browser.value(f"(({{left, top, width}}) => ({{left, top, width}}))({box})")
        return found

    def x(self, ns: float) -> float:
        """Where a moment of the trace lies in the window of the browser."""
        return self.box["left"] + float(self.browser.value(f"nsysdiagTimeline.view.x({ns - WHOLE[0]})"))

    def y(self, kind: str) -> float:
        """The middle of the first lane of a kind."""
        item = f"nsysdiagTimeline.layout().items.find((item) => item.type === '{kind}')"
        return self.box["top"] + float(self.browser.value(f"(({{y, height}}) => y + height / 2)({item})"))

    @property
    def window(self) -> tuple[int, int]:
        start, end = (
            int(self.browser.value(f"document.querySelector('canvas.lanes').dataset.{side}")) for side in ("from", "to")
        )
        return start, end

    @property
    def gap(self) -> str:
        return str(self.browser.value("document.querySelector('canvas.lanes').dataset.gap"))

    def text(self, selector: str) -> str:
        return str(self.browser.value(f"document.querySelector('{selector}').innerText"))

    def focus(self) -> None:
        self.browser.value("document.querySelector('canvas.lanes').focus({preventScroll: true})")

    def keys(self, *keys: str) -> None:
        self.focus()
        for key in keys:
            self.browser.key(key)

    def search(self, text: str) -> None:
        """Type into the field of the search, as after the key that leads there."""
        self.keys("/")
        self.browser.do(self.browser.page.keyboard.insert_text, text)

    @property
    def found(self) -> str:
        return self.text(".search-count")

    @property
    def tables(self) -> dict[str, list[list[str]]]:
        """The tables of sums in the card: by the head of the first column, the text of each row."""
        cells = "Array.from(row.cells, (cell) => cell.innerText)"
        found: list[list[list[str]]] = self.browser.value(
            f"Array.from(document.querySelectorAll('.sums'), (table) => Array.from(table.rows, (row) => {cells}))"
        )
        return {head[0]: rows for head, *rows in found}
