"""A reader of the page: clicks and types as a person does, prints, and takes files along."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from tests.output.devtools import Browser

_KEYS = {"Enter": (13, "\r"), "PageDown": (34, ""), "PageUp": (33, ""), "ArrowDown": (40, ""), "End": (35, "")}
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
        self._ask("Page.addScriptToEvaluateOnNewDocument", source=code)

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        code, text = _KEYS[key]
        typed = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **typed)

    def write(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.value(f"document.querySelector({selector!r}).focus()")
        self._ask("Input.insertText", text=text)

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

    def downloads(self, folder: Path) -> None:
        """Where files that the page offers go."""
        allowed = {"behavior": "allow", "downloadPath": str(folder), "browserContextId": self._context}
        self._chromium.ask("Browser.setDownloadBehavior", **allowed)

    def printed(self) -> int:
        """How many pages of paper the page takes."""
        options: dict[str, Any] = {"preferCSSPageSize": True, "printBackground": True}
        document = base64.b64decode(self._ask("Page.printToPDF", **options)["data"])
        return len(re.findall(rb"/Type /Page\b(?!s)", document))
