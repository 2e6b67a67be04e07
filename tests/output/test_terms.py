"""Terms of the field are explained where a page uses them, from one dictionary."""

from __future__ import annotations

import re

import pytest

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.html.page import TERMS, explained

TERM = re.compile(r'<abbr class="term"( tabindex="0")? title="([^"]*)">([^<]*)</abbr>')


def marked(text: str) -> list[str]:
    return [found[2] for found in TERM.findall(explained(f"<main id=main>{text}</main>"))]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("<p>Idle in gaps between streams</p>", ["Idle", "gaps", "streams"]),
        ("<p>exposed communication, exposed</p>", ["exposed communication"]),
        ("<p>a gap group of two gap groups</p>", ["gap group"]),
        ("<p>launch-bound</p><p>the SMs of sm_90</p>", ["launch-bound", "SMs"]),
        ("<p>idle</p><p>idle</p>", ["idle"]),
        ("<section ><p>idle</p></section><section ><p>idle</p></section>", ["idle", "idle"]),
        ('<p>in <span class="name">idle_<wbr>gap gap</span> it is busy</p>', ["busy"]),
        ("<pre>idle</pre><code>gap</code><a href=x>busy</a><script>stream</script>", []),
        ("<p>a bridle, idleness and pre-judged</p>", []),
    ],
)
def test_each_is_explained_once_in_a_section(text: str, terms: list[str]) -> None:
    assert marked(text) == terms


def test_the_keyboard_reaches_the_first_that_is_no_button() -> None:
    page = "<main id=main><th>idle</th><p>idle</p><section ><p>idle</p></section></main>"
    page = page.replace("<p>", "<section ><p>", 1)
    assert [found[0] for found in TERM.findall(explained(page))] == ["", ' tabindex="0"', ""]


def test_nothing_outside_of_the_main_part_is_touched() -> None:
    page = "<head><script>if (a < b && idle > c) {}</script></head><nav>idle</nav><main id=main>gap</main><p>idle</p>"
    assert explained(page).count("<abbr") == 1


@pytest.mark.slow
def test_the_page_uses_most_terms(demo: nsysdiag.Report) -> None:
    page = FORMATS["html"].render(demo, RenderOptions()).decode()
    found = TERM.findall(page)
    assert {meaning for _reach, meaning, _term in found} <= set(TERMS.values())
    assert len({meaning for reach, meaning, _term in found if reach}) > len(TERMS) / 2


def test_each_meaning_is_a_sentence_of_its_own() -> None:
    assert len(set(TERMS.values())) == len(TERMS)
    assert all(not meaning[0].islower() and meaning.endswith(".") and len(meaning) < 140 for meaning in TERMS.values())
