"""Real traces: no name of theirs is in anything that is written about them."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsysdiag.record import to_json
from nsysdiag.share.names import is_class_of_operation, is_public_function, is_public_module
from nsysdiag.share.redaction import redacted
from tests.levels import THOROUGH
from tests.share.redaction.canaries import everything_written
from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "/nowhere"))
TRACES = [path for path in sorted(FOLDER.glob("*.sqlite")) if THOROUGH or "-after_" not in path.name]
"""Of a pair of one program one."""
SHORTEST = 6
_NAMES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ("demangledName", "shortName", "mangledName"),
    "NVTX_EVENTS": ("textId",),
    "ThreadNames": ("nameId",),
    "SAMPLING_CALLCHAINS": ("symbol", "module"),
    "CUDA_CALLCHAINS": ("symbol", "module"),
    "OSRT_CALLCHAINS": ("symbol", "module"),
}
_WORD = re.compile(r"[^\W\d_]+")
_ROOT = Path(__file__).parents[3]
_OF_THE_PROGRAM = ("nsysdiag/**/*.py", "nsysdiag/data/**/*.toml", "templates/**/*.html", "templates/**/*.js")
_SOURCES = [path for pattern in _OF_THE_PROGRAM for path in _ROOT.glob(pattern)]
OWN = frozenset(word for each in _SOURCES for word in _WORD.findall(each.read_text(encoding="utf-8").lower()))
"""Every word of the program itself."""
_TEXTS = {"NVTX_EVENTS": "text", "PROCESSES": "name", "TARGET_INFO_SYSTEM_ENV": "value"}


def names_of(path: Path) -> set[str]:
    """The names of kernels, ranges, threads, processes, functions and modules of a trace."""
    found: set[str] = set()
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        columns = {
            table: {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')}
            for table in (*_NAMES, *_TEXTS)
        }
        queries = [
            f"SELECT value FROM StringIds WHERE id IN (SELECT {column} FROM {table})"
            for table, wanted in _NAMES.items()
            for column in wanted
            if column in columns[table]
        ]
        queries += [f"SELECT {column} FROM {table}" for table, column in _TEXTS.items() if column in columns[table]]
        for query in queries:
            found.update(str(value) for (value,) in connection.execute(query))
    return found


def is_foreign(name: str) -> bool:
    """Long enough to be told from other text, and neither public nor made of words that the analysis uses itself."""
    public = is_public_function(name) or is_public_module(name) or is_class_of_operation(name)
    return (
        len(re.findall(r"[A-Za-z]", name)) >= SHORTEST
        and not public
        and not OWN.issuperset(_WORD.findall(name.lower()))
    )


@pytest.mark.real
@pytest.mark.sampled(normal=11)
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_no_name_comes_through(path: Path, shared: Shared) -> None:
    report = shared.report(path)
    foreign = {name: set(re.findall(r"\w+", name)) for name in names_of(path) if is_foreign(name)}
    plain = to_json(report).decode()
    shown = {name for name in foreign if name in plain}
    for format_name, data in everything_written(redacted(report)):
        text = data.decode(errors="replace")
        written = set(re.findall(r"\w+", text))
        possible = [name for name, words in foreign.items() if words <= written]
        hits = {name for name in possible if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
        assert hits == set(), f"{format_name} of {len(shown)} names in the plain report"
