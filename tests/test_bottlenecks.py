"""A bottleneck is one record: what is said and drawn of it is a field."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECKS, OF_WORK, noun_of, promised, title_of
from nsysdiag.document.view import WORK

PACKAGE = Path(__file__).parents[1] / "nsysdiag"
OTHER_MEANINGS = {
    ("diagnosis/show.py", "_cards"): "parts of the window",
    ("formats/plots.py", ""): "parts of the window",
    ("formats/html/timeline_lanes.py", ""): "parts of the window",
    ("replay/transforms.py", ""): "what --overlap may overlap",
    ("replay/transforms.py", "_near"): "options of what-if",
    ("timeline/levels.py", "_lanes"): "parts of the window",
    ("trace/capabilities.py", ""): "kinds of evidence",
    ("comparison/show/words.py", ""): "what a step holds, and judgements",
    ("comparison/show/why.py", ""): "families of kernels",
}


def keyed(source: str) -> Iterator[str]:
    """The functions, "" outside of any, that write a dictionary with the id of a bottleneck as a key."""
    tree = ast.parse(source)
    inside = {
        child: function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for child in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if keys & set(BOTTLENECK_IDS):
                yield inside.get(node, "")


def test_nothing_else_is_keyed_by_bottleneck() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    found = {(name, function) for name, path in files.items() for function in keyed(path.read_text(encoding="utf-8"))}
    assert found == set(OTHER_MEANINGS)


def test_the_search_finds_a_dictionary() -> None:
    assert list(keyed('A = {"sync": 1}\ndef f():\n    return {"input": 2, "x": 3}\nB = {"x": "sync"}')) == ["", "f"]


def test_each_is_once_in_order() -> None:
    assert tuple(BOTTLENECKS) == BOTTLENECK_IDS
    assert len({each.title for each in BOTTLENECKS.values()}) == len(BOTTLENECKS)


def test_work_is_that_of_iterations() -> None:
    assert OF_WORK.keys() == WORK.keys()
    assert {work: BOTTLENECKS[name].part for work, name in OF_WORK.items()} == {
        work: part for work, (part, _) in WORK.items()
    }


def test_one_of_a_later_version_stands_for_itself() -> None:
    assert noun_of("next_thing") == title_of("next_thing") == "next thing"
    assert promised("next_thing")
    assert not promised("unknown")
