"""A page as its elements, for tests that judge it like a browser would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}
PART_OF_TEXT = {"abbr", "wbr"}
"""What only explains or divides the words of a text."""


@dataclass
class Element:
    """An element with its attributes, the text directly inside it, and its children."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, *tags: str) -> list[Element]:
        return [element for element in self.walk() if element.tag in tags]

    def whole_text(self) -> str:
        return "".join(element.text for element in self.walk())


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.current = self.root
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len(dict(attrs)) != len(attrs):
            self.faults.append(f"an attribute twice in <{tag}>")
        if tag in PART_OF_TEXT:
            return
        element = Element(tag, {name: value or "" for name, value in attrs}, self.current)
        self.current.children.append(element)
        if tag not in VOID:
            self.current = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in PART_OF_TEXT:
            return
        if self.current.tag != tag or self.current.parent is None:
            self.faults.append(f"</{tag}> inside <{self.current.tag}>")
            return
        self.current = self.current.parent

    def handle_data(self, data: str) -> None:
        self.current.text += data


def unexplained(page: str) -> str:
    """The page without what explains or divides the words of its texts."""
    return re.sub(rf"</?(?:{'|'.join(sorted(PART_OF_TEXT))})\b[^>]*>", "", page)


def parse(page: bytes) -> Element:
    """The root of the page's elements; every element must be closed where it belongs."""
    parser = _Parser()
    parser.feed(page.decode())
    parser.close()
    assert parser.faults == []
    assert parser.current is parser.root
    return parser.root
