"""Markdown: what a name says is shown, never acted on. Judged by a Markdown parser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nsysdiag.document import names as markup
from nsysdiag.document.names import clip, visible
from tests.output.rendered import EVERY_SAMPLE, rendered
from tests.output.samples import HOSTILE

anything = st.text(st.characters(exclude_categories=()), max_size=40)
tricky = st.text(st.sampled_from("`|\\*_<>[]()!@#&;: a1-"), max_size=12)
TRIGGERS = re.compile(r"[@#!]\w|GH-\d|://|www\.", re.IGNORECASE)


class Shape(HTMLParser):
    """The elements of a page and its text; a text ends where an element or a comment begins."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.plain: list[str] = []
        self.code: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._open.append(tag)
        if tag == "code":
            self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "code" in self._open:
            self.code[-1] += data
        else:
            self.plain.append(data)


def drawn(markdown: str) -> Shape:
    return Shape(MarkdownIt("commonmark").enable("table").render(markdown))


def page(sample: str) -> str:
    return rendered("md", sample).decode()


@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_only_our_own_elements(sample: str) -> None:
    shape = drawn(page(sample))
    known = {"h1", "h2", "h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"}
    assert set(shape.elements) <= known | {"ol", "ul", "li", "hr", "blockquote"}
    assert not [plain for plain in shape.plain if TRIGGERS.search(plain)]


def test_rows_keep_their_cells() -> None:
    for table in re.findall(r"(?:^\|.*\n)+", page("hostile"), re.MULTILINE):
        shape = drawn(table)
        rows = shape.elements.count("tr")
        assert shape.elements.count("td") == shape.elements.count("th") * (rows - 1)
        assert rows == table.count("\n") - 1


def test_lines_hold_no_control_characters() -> None:
    assert all(line.isprintable() for line in page("hostile").split("\n"))


@given(anything | tricky)
@example("a\\|b")
@example("``")
def test_code_shows_the_name(name: str) -> None:
    shape = drawn(f"x {markup.code(name)} y")
    if visible(name).strip():
        assert set(shape.elements) == {"p", "code"}
        assert shape.code == [clip(name, markup.MARKUP_LIMIT)]


@given(tricky, tricky)
@example("a\\|b", "|")
@example("\\", "\\\\|")
def test_code_in_a_table_stays_in_its_cell(first: str, second: str) -> None:
    row = [markup.code(name, in_table=True) for name in (first, second)]
    shape = drawn(markup.table(["A", "B"], "ll", [row]))
    assert shape.elements.count("td") == 2
    for name, shown in zip((name for name in (first, second) if name.strip()), shape.code, strict=True):
        assert shown.replace("\\", "") == name.replace("\\", "")


@given(anything | tricky | st.sampled_from(HOSTILE))
@example("- # x")
@example("__0__")
@example("1. x")
@example("    x")
@example("---")
def test_text_is_plain(sentence: str) -> None:
    shape = drawn(f"- {markup.text(sentence)}")
    assert set(shape.elements) <= {"ul", "li", "p"}
    assert not [plain for plain in shape.plain if TRIGGERS.search(plain)]


@given(anything | tricky)
@example("```\nx")
def test_fence_holds(command: str) -> None:
    shape = drawn(markup.fenced(command, "sh"))
    assert set(shape.elements) == {"pre", "code"}
    assert shape.code == [visible(command) + "\n"]
