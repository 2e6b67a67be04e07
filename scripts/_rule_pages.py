"""Write the pages of the documentation that are made of the program: one for each cause and each rule of findings, as
`nsysdiag rules ID --format md` prints it. Usage, as in scripts/docs: python scripts/_rule_pages.py FOLDER

FOLDER is a copy of docs/. The tables in its causes.md get links to the pages, and each page gets its section of
cause-examples.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nsysdiag.causes import CAUSES
from nsysdiag.cli.rule_pages import RulePage, one_markdown, pages

HEADING = re.compile(r"^#(#+ )", re.MULTILINE)
LOOKALIKE = re.compile(r"^\* `(\w+)` \(", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
EXAMPLE = re.compile(r"^<!-- example (\w+): [^\n]* -->\n\n(.*?)\n\n<!-- end -->$", re.DOTALL | re.MULTILINE)
ADVICE = "\n## What to do\n"
NO_EXAMPLE = "The tests have no pair of programs that shows `{}` before and after a fix."
LIST = "\n```{{toctree}}\n:caption: {title}\n:hidden:\n\n{names}\n```\n"
COLOR = 'A GPU that is idle for this has this colour in reports: <span class="cause" style="background: {}"></span>'


def folder_of(page: RulePage) -> str:
    """Where the page is, below docs/."""
    return "causes" if page.order else "findings"


def examples(folder: Path) -> dict[str, str]:
    """By cause or finding: what a program looks like before and after a fix."""
    none = {name: NO_EXAMPLE.format(name) for name in CAUSES}
    return none | dict(EXAMPLE.findall((folder / "cause-examples.md").read_text(encoding="utf-8")))


def content(page: RulePage, example: str | None = None) -> str:
    """The page: its headings begin at the first level, similar causes are links, the example is before advice."""
    text = HEADING.sub(r"\1", one_markdown(page))
    text = LOOKALIKE.sub(lambda found: f"* [`{found[1]}`]({found[1]}.md) (" if found[1] in CAUSES else found[0], text)
    heading, meaning, place, rest = text.split("\n\n", 3)
    color = [COLOR.format(page.color)] if page.order else []
    if example:
        example = example.replace("](", "](../")  # links of a page in docs/
        rest = rest.replace(ADVICE, f"\n## Before and after a fix\n\n{example}\n{ADVICE}", 1)
    return "\n\n".join([heading, meaning, place, *color, rest])


def linked(text: str, every: list[RulePage]) -> str:
    """The list of causes with a link in each row, and its pages behind it."""
    targets = {page.id: f"{folder_of(page)}/{page.id}.md" for page in every}
    text = ROW.sub(lambda found: f"| [`{found[1]}`]({targets[found[1]]}) |" if found[1] in targets else found[0], text)
    for folder, title in (("causes", "Causes"), ("findings", "Findings")):
        names = [f"{folder}/{page.id}" for page in every if folder_of(page) == folder]
        text += LIST.format(title=title, names="\n".join(names))
    return text


def write(folder: Path) -> None:
    """All of them."""
    every, before_and_after = pages(), examples(folder)
    for page in every:
        path = folder / folder_of(page) / f"{page.id}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content(page, before_and_after.get(page.id)), encoding="utf-8")
    index = folder / "causes.md"
    index.write_text(linked(index.read_text(encoding="utf-8"), every), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
