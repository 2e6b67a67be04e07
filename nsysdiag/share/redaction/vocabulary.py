"""Our own words: those of the sentences that the analysis writes.

They are read from the sources of the packages that write them, so that a sentence added there is known here at once.
A word of a text that is none of these, no number and no public function came from the trace.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

WORD = re.compile(r"(?:[^\s,;:()'\"“”›→×+=|]|::)+")
"""A word; the two colons of C++ are part of one, as is all punctuation that paths and identifiers have."""
_SOURCES = [
    "events",
    "gaps",
    "causes",
    "ledger",
    "wakeups",
    "stacks",
    "gap_groups",
    "iterations",
    "launches",
    "kernels",
    "copies",
    "memory",
    "communication",
    "utilization",
    "counters",
    "host",
    "timeline",
    "diagnosis",
    "findings",
    "ranks",
    "trace",
    "pipeline",
    "cost",
    "config/settings.py",
    "units.py",
]
_SHOWN = re.compile(r"(facts|words|rows|markdown|chart)\.py")
"""Files that say what a report holds, or draw it: none of their words gets into a report."""
_OF_NSYS = "profiling instrumentation initialization triggered resource lazy loading buffer flush driver compiler"
"""What nsys and CUPTI call their own overhead."""
_EDGES = ".!?<>[]{}%/"


@cache
def own_words() -> frozenset[str]:
    """All words of the texts in our sources as they are written there, punctuation at their ends aside."""
    texts = (text for path in _files() for text in _texts(path.read_text(encoding="utf-8")))
    return frozenset(bare(word) for text in (_OF_NSYS, *texts) for word in WORD.findall(text))


@cache
def _lower_case() -> frozenset[str]:
    return frozenset(map(str.lower, own_words()))


def is_own(word: str) -> bool:
    """Whether a word is one of ours, as it is written, in small letters or at the beginning of a sentence; `COPY` is
    not our `copy`."""
    return word in own_words() or (word in (word.lower(), word.capitalize()) and word.lower() in _lower_case())


def bare(word: str) -> str:
    """A word without the punctuation around it."""
    return word.strip(_EDGES)


def _files() -> Iterator[Path]:
    root = Path(__file__).parents[2]
    for name in _SOURCES:
        path = root / name
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        yield from (each for each in files if not _SHOWN.fullmatch(each.name) and each.parent.name != "show")


def _texts(source: str) -> Iterator[str]:
    """The texts of a module without its docstrings."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
