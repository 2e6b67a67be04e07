"""Plain English, as in NVIDIA's and PyTorch's documentation: the field's terms, short sentences, one style of units."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from nsysdiag.cli import rule_pages
from nsysdiag.cli.rule_pages import one_markdown, one_text
from tests import prose
from tests.prose import Prose

MOST_WORDS = 25
"""In a sentence of the program, and in a part of a docstring: these list fields, so a semicolon or a colon ends one."""
MOST_WORDS_OF_A_PAGE, MOST_WORDS_OF_A_PART = 35, 28
"""In a sentence of the documentation, and in a part of one, up to a semicolon or a colon."""

RETIRED = {
    r"beside": "next to, besides, or: while ... runs",
    r"(?:un)?told": "reported, known; `told apart`: distinguished",
    r"lies|lay|lain": "is in, is at",
    r"nobody|no one|anybody|somebody": "no thread, no program; any, a thread",
    r"whoever": "the thread that",
    r"com(?:es?|ing) round": "repeats",
    r"reckon(?:s|ed|ing)?": "simulated, computed",
    r"stor(?:y|ies)": "text of a finding",
    r"sightings?": "evidence rows",
    r"spots?": "hotspot",
    r"run[_ ]ahead depth": "queue depth",
    r"r[ua]ns? dry": "drains",
    r"collapses": "queue drains",
    r"bubbles?": "launch-bound phase",
    r"lens(?:es)?": "mask",
    r"stairs?": "steps",
    r"laid away|paged out|let go|lets go": "spilled, evicted, released",
    r"g[ia]ves? (?:\w+ ){0,3}back": "returns, reproduces",
    r"recut|cut again": "by root cause",
    r"usual habits?|habits?": "usual wakers",
    r"parted": "separated, divided",
    r"troubles?": "bottleneck, problem",
    r"recurring gaps?|kinds? of gaps?": "gap group",
    r"vouch(?:es)?": "counts for",
    r"learnt": "calibrated, learned",
    r"anew": "again",
    r"to and fro": "back and forth",
    r"at hand": "available",
    r"(?:go|goes|went|going) by": "pass; `by`",
    r"dries|dried": "drains",
    r"wherein|thereby|hence": "so",
    r"analys(?:e|ed|ing)": "analyze, analyzed",
    r"repair(?:s|ed|ing)?": "fix, fixed",
}
RETIRED_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(RETIRED)})(?![\w-])", re.IGNORECASE)
MICROSECONDS = re.compile(r"(?:\d|\})\s+(?:us|usecs?|(?:micro|milli|nano)seconds?)\b|\bmicroseconds?\b", re.IGNORECASE)
"""`20us` without a blank is what one types; a duration that is shown is `20 µs`."""
PER_CENT = re.compile(r"[\d}][ \N{NO-BREAK SPACE}](?:%(?!\()|per ?cent)")
"""`72.6%` in text and pages; a blank would let a line break before the sign."""


def problems(found: Iterable[Prose], most: int | None = None, allowed: Iterable[str] = ()) -> list[str]:
    """What is wrong with texts: retired words, units, and sentences of more than `most` words."""
    return [
        f"{each.path}:{each.line}: {problem}"
        for each in found
        if not any(sign in " ".join(each.text.split()) for sign in allowed)
        for problem in _problems(each.text, most)
    ]


def _problems(text: str, most: int | None) -> list[str]:
    said = " ".join(prose.plain(text).split())
    found = [f"'{word[0]}': say {_instead(word[0])}" for word in RETIRED_WORD.finditer(said)]
    found += [f"'{sign[0]}': durations are shown as `20 µs`" for sign in MICROSECONDS.finditer(said)]
    found += [f"'{sign[0]}': shares are shown as `72.6%`" for sign in PER_CENT.finditer(said)]
    if most is not None:
        found += [
            f"{count} words: {sentence}"
            for sentence in prose.sentences(text)
            if (count := prose.words(sentence)) > most
        ]
    return found


def in_parts(found: Prose) -> Prose:
    """With a sentence for each part that a semicolon or a colon ends."""
    return found._replace(text=re.sub(r"[;:](?=\s)", ".\n\n", found.text))


def _instead(word: str) -> str:
    return next(instead for old, instead in RETIRED.items() if re.fullmatch(old, word, re.IGNORECASE))


ALLOWED = (
    "Examples: nsysdiag",  # command lines
    "NVIDIA GeForce Tesla",  # lists of names that redaction keeps
    "cublas cublasLt",
    " = each.",  # columns of tables
    "StringIds id! value",  # declarations of tables
)


def collected(found: Iterable[Prose], least: int) -> list[Prose]:
    """The texts, of which there are many: a collector that finds none would let everything pass."""
    every = list(found)
    assert len(every) >= least
    return every


def test_what_the_program_says() -> None:
    modules = (each for path in prose.modules() for each in prose.said(path))
    said = [*collected(modules, 1100), *collected(prose.rules(), 350)]
    assert problems(said, MOST_WORDS, ALLOWED) == []


def test_what_the_page_says() -> None:
    assert problems(collected([*prose.templates(), *prose.scripts()], 200), MOST_WORDS) == []


def test_pages_of_rules() -> None:
    made = [(each.id, one_text(each) + one_markdown(each)) for each in rule_pages.pages()]
    assert problems(Prose(name, 0, text) for name, text in [*made, ("all", rule_pages.all_text())]) == []


@pytest.mark.slow
def test_docstrings() -> None:
    found = collected((each for path in prose.modules() for each in prose.docstrings(path)), 4000)
    assert problems(map(in_parts, found), MOST_WORDS) == []


@pytest.mark.checkout
@pytest.mark.parametrize("path", prose.pages(), ids=lambda path: path.name)
def test_pages(path: prose.Path) -> None:
    page = prose.page(path)
    assert problems([page], MOST_WORDS_OF_A_PAGE) + problems([in_parts(page)], MOST_WORDS_OF_A_PART) == []


class TestOfTheTest:
    """Each rule finds what it is for."""

    def test_rules_find_it(self) -> None:
        wrong = {
            "Kernels that ran beside copies.": "next to",
            "It took {} usec.": "20 µs",
            "A wait of three microseconds.": "20 µs",
            "Kernels take {} % of the time.": "72.6%",
            "Kernels take 45 percent.": "72.6%",
            f"The GPU {'waited and ' * 12}slept.": "27 words",
        }
        for text, why in wrong.items():
            (found,) = problems([Prose("a.py", 1, text)], MOST_WORDS)
            assert found.startswith("a.py:1: ")
            assert why in found

    def test_good_text_passes(self) -> None:
        good = [
            "Kernels take 45% of the time, 20 µs each.",
            "A field named `told`, and `20 us` as code: write 20us, 1.5ms or 3s",
            "One sentence. " * 30,
            "* An item of a list\n" * 30,
            "Text.\n```\n" + "beside 20 us and 5 % " * 30 + "\n```\n",
        ]
        assert problems([Prose("a.py", 1, text) for text in good], MOST_WORDS) == []
