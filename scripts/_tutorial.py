"""Write the tutorial as a page with its outputs. Usage, as in scripts/docs: python scripts/_tutorial.py FOLDER

FOLDER is a copy of docs/. Its tutorial.ipynb has no outputs: the cells run here, one after the other in one namespace,
and tutorial.md shows what a notebook would. Figures are pages of their own, with one copy of plotly.js, in the folder
`_static/tutorial`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

PLACE = "_static/tutorial"
LINK = "[tutorial.ipynb](tutorial.ipynb) walks"
SHOWN = "The [tutorial](tutorial.md), as a notebook [tutorial.ipynb](tutorial.ipynb), walks"
LIST = "\n```{toctree}\n:hidden:\n\ntutorial\n```\n"
FRAME = '<iframe src="{}" title="{}" loading="lazy" style="width:100%; height:{}px; border:0"></iframe>'
MARGIN = 20
"""Pixels that a page needs around its figure."""


def write(folder: Path) -> None:
    """The page, its figures, and the link to it in notebooks.md."""
    (folder / PLACE).mkdir(parents=True, exist_ok=True)
    notebook = json.loads((folder / "tutorial.ipynb").read_text(encoding="utf-8"))
    (folder / "tutorial.md").write_text("\n\n".join(parts(notebook, folder)) + "\n", encoding="utf-8")
    page = folder / "notebooks.md"
    text = page.read_text(encoding="utf-8")
    assert LINK in text
    page.write_text(text.replace(LINK, SHOWN) + LIST, encoding="utf-8")


def parts(notebook: dict[str, Any], folder: Path) -> list[str]:
    """The cells in Markdown. They run in an empty folder, which is removed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for number, cell in enumerate(notebook["cells"]):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                found.append(source.replace("](../nsysdiag/data/report.schema.json)", "](results.md)"))
            else:
                found += [fenced(source, "python"), *outputs(source, names, folder, number)]
    return found


def outputs(source: str, names: dict[str, Any], folder: Path, number: int) -> list[str]:
    """What a cell prints, and then the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names) if last else None
    printed = [fenced(stream.getvalue().rstrip(), "text")] if stream.getvalue() else []
    return printed if value is None else [*printed, shown(value, folder, f"figure-{number}")]


def shown(value: Any, folder: Path, name: str) -> str:
    """A value as a notebook shows it: a figure, HTML, or text."""
    if hasattr(value, "to_plotly_json"):
        path = f"{PLACE}/{name}.html"
        value.write_html(folder / path, include_plotlyjs="directory", div_id=name)
        height = (value.layout.height or 450) + MARGIN
        return raw(FRAME.format(path, (value.layout.title.text or name).replace('"', ""), height))
    if hasattr(value, "_repr_html_"):
        return raw(value._repr_html_())
    return fenced(repr(value), "text")


def fenced(text: str, language: str) -> str:
    """A block of code."""
    return f"```{language}\n{text}\n```"


def raw(html: str) -> str:
    """HTML as it is."""
    return f"````{{raw}} html\n{html}\n````"


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
