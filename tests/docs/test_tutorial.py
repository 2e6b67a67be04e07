"""The tutorial on the site: its cells with what they print and show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import nsysdiag
from scripts import _tutorial
from tests.docs.pages import DOCS

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOK = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))


def code(*sources: str) -> dict[str, Any]:
    return {"cells": [{"cell_type": "code", "source": [source]} for source in sources]}


def test_a_cell_shows_what_it_prints_and_its_last_value(tmp_path: Path) -> None:
    found = _tutorial.parts(code("a = 2\nprint('two')\na + 1", "b = a", "{'a': a}"), tmp_path)
    assert found == [
        "```python\na = 2\nprint('two')\na + 1\n```",
        "```text\ntwo\n```",
        "```text\n3\n```",
        "```python\nb = a\n```",
        "```python\n{'a': a}\n```",
        "```text\n{'a': 2}\n```",
    ]


@pytest.mark.slow
def test_tables_are_html_and_figures_are_pages(tmp_path: Path) -> None:
    (tmp_path / _tutorial.PLACE).mkdir(parents=True)
    source = "import pandas\npandas.DataFrame({'cause': ['sync']})"
    figure = "import plotly.graph_objects\nplotly.graph_objects.Figure(layout={'height': 300})"
    _, table, _, frame = _tutorial.parts(code(source, figure), tmp_path)
    assert table.startswith("````{raw} html\n<div>")
    assert "<td>sync</td>" in table
    assert 'src="_static/tutorial/figure-1.html"' in frame
    assert "height:320px" in frame
    assert (tmp_path / _tutorial.PLACE / "figure-1.html").is_file()


def test_a_cell_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        _tutorial.parts(code("1 / 0"), tmp_path)


@pytest.mark.slow
def test_the_tutorial_shows_its_report_and_six_figures(tmp_path: Path) -> None:
    for name in ("tutorial.ipynb", "notebooks.md"):
        (tmp_path / name).write_text((DOCS / name).read_text(encoding="utf-8"), encoding="utf-8")
    _tutorial.write(tmp_path)
    text = (tmp_path / "tutorial.md").read_text(encoding="utf-8")
    assert text.count("<iframe") == 6
    assert len(list((tmp_path / _tutorial.PLACE).glob("*.html"))) == 6
    demo = nsysdiag.load(nsysdiag.demo_trace(tmp_path / "demo.sqlite"))
    assert text.count(demo.diagnosis.headline) >= 2, "printed, and in the report's first screen"
    assert [cell for cell in NOTEBOOK["cells"] if "".join(cell["source"]).splitlines()[0] not in text] == []
    assert "tutorial.md" in (tmp_path / "notebooks.md").read_text(encoding="utf-8")
