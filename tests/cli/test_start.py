"""What a small trace does not need takes no time: counted in modules, classes and searches, not in seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pytest

import nsysdiag
from tests.simulator.large import write_large

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGE = Path(nsysdiag.__file__).parent
FORMATS = ("batch", "html", "openmetrics", "prose", "tables", "viewers")
CODE = """
import atexit, gc, json, sys
atexit.register(lambda: print(json.dumps({
    "modules": sorted(sys.modules), "searches": [each["collections"] for each in gc.get_stats()]
})))
from nsysdiag.entry import main
main()
"""


class Start(TypedDict):
    modules: list[str]
    searches: list[int]


def started(*arguments: str | Path) -> Start:
    """What a command has imported by its end, and how often Python looked for garbage in each generation."""
    line = [sys.executable, "-P", "-c", CODE, *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    found: Start = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def page_and_json(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A small trace made a page and JSON."""
    folder = tmp_path_factory.mktemp("start")
    trace = write_large(folder / "small.sqlite", 50)
    return started("analyze", trace, "-o", folder / "x.json", "-o", folder / "x.html", "--quiet")


def formats_in(modules: Iterable[str]) -> set[str]:
    return {each for each in FORMATS if f"nsysdiag.formats.{each}" in modules}


@pytest.mark.thorough
def test_formats_are_imported_when_they_are_written(page_and_json: Start) -> None:
    assert formats_in(page_and_json["modules"]) == {"html"}


def test_nothing_of_other_commands_is_imported(page_and_json: Start) -> None:
    modules = set(page_and_json["modules"])
    assert {"jinja2", "numpy"} <= modules, "modules are seen"
    assert modules & {"distributed", "pandas", "plotly", "pyarrow", "rich", "sqlalchemy"} == set()
    others = ("batch", "comparison.compare", "pipeline.changes", "ranks.pipeline", "share")
    assert modules & {f"nsysdiag.{each}" for each in others} == set()


def test_at_the_end_objects_stay_and_what_is_registered_runs() -> None:
    code = """
import atexit, sys
class Kept:
    def __del__(self): print("freed")
kept = Kept()
atexit.register(print, "registered")
from nsysdiag.entry import process
process()
"""
    for arguments, code_wanted in ((["--version"], 0), (["--no-such-option"], 2)):
        done = subprocess.run([sys.executable, "-P", "-c", code, *arguments], capture_output=True, check=False)
        assert (done.returncode, done.stdout.split()[-1]) == (code_wanted, b"registered"), done.stderr


def test_garbage_is_hardly_searched_for(page_and_json: Start) -> None:
    """A few times before the first line of ours, and never in all that has been imported."""
    youngest, middle, oldest = page_and_json["searches"]
    assert youngest < 20
    assert middle < 3
    assert oldest == 0


def test_no_class_is_made_by_dataclass() -> None:
    """It takes a hundred times as long as a struct: a seventh of a small trace was that."""
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 250
    assert [str(path) for path in files if "dataclass" in path.read_text(encoding="utf-8")] == []
