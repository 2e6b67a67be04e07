"""A reader of the page: clicks and types as a person does, prints, and takes files along."""

from __future__ import annotations

import re
from pathlib import Path

from tests.output.browser import Browser

KEEP_COPIES = "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
UNFOLD = "document.querySelectorAll('details.fold').forEach((each) => { each.open = true; })"
ROWS = "Array.from(document.querySelectorAll('#{table} table[data-first] tbody')).filter((each) => !each.hidden)"


SETTLED = """
(async () => {{
  const element = document.querySelector({selector});
  const middle = () => {{
    element.scrollIntoView({{ block: "center", behavior: "instant" }});
    const box = element.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  }};
  for (let last = middle(), tries = 0; tries < 100; tries += 1) {{
    await new Promise((later) => setTimeout(later, 60));
    const now = middle();
    const there = document.elementFromPoint(...now);
    if (now[0] === last[0] && now[1] === last[1] && there && element.contains(there)) return now;
    last = now;
  }}
  return middle();
}})()
"""
"""The middle of an element, once it does not move any more."""


class Reader(Browser):
    """A browser with the page of one file; places are given as selectors."""

    file: Path

    def start(self, hash: str = "", *, unfold: bool = True) -> None:
        """Open the file, at a place of it, and the sections that are folded below a line."""
        self.open(f"{self.file.as_uri()}{hash}")
        if unfold:
            self.value(UNFOLD)
        self.value(f"{KEEP_COPIES}; 0")

    def first(self, code: str) -> None:
        """Run this in every page before its own scripts."""
        self.do(self.page.add_init_script, code)

    def write(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.value(f"document.querySelector({selector!r}).focus()")
        self.do(self.page.keyboard.insert_text, text)

    def choose(self, selector: str, value: str) -> None:
        """Pick a value of a list."""
        code = f"(() => {{ const at = document.querySelector({selector!r}); at.value = {value!r};"
        self.value(f"{code} at.dispatchEvent(new Event('change')); }})()")

    def click_on(self, selector: str) -> None:
        """Click into the middle of an element, once it stands still and nothing lies over it."""
        x, y = self.value(SETTLED.format(selector=repr(selector)))
        self.click(x, y)

    def column(self, table: str, number: int) -> list[str]:
        """What the rows shown hold in a column of the long table of a section."""
        cells = f"{ROWS.format(table=table)}.map((each) => each.rows[0].cells[{number}].textContent.trim())"
        shown: list[str] = self.value(cells)
        return shown

    def text(self, selector: str) -> str:
        """The text of an element, on one line."""
        return " ".join(str(self.value(f"document.querySelector({selector!r}).textContent")).split())

    def focused(self) -> str:
        """The text of the element that has the focus."""
        return str(self.value("document.activeElement.textContent"))

    def taken(self, selector: str, path: Path) -> None:
        """Click on what offers a file, and keep that as `path`."""
        place = self.value(SETTLED.format(selector=repr(selector)))

        def take() -> None:
            with self.page.expect_download() as offered:
                self.page.mouse.click(*place)
            offered.value.save_as(path)

        self.do(take)

    def printed(self) -> int:
        """How many pages of paper the page takes."""
        document = self.do(self.page.pdf, prefer_css_page_size=True, print_background=True)
        return len(re.findall(rb"/Type /Page\b(?!s)", document))
