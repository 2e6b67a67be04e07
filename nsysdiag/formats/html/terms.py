"""Terms in the text of a page, with what they mean as a tooltip: on hover, and by keyboard where each first occurs."""

from __future__ import annotations

import re

from markupsafe import escape

from nsysdiag.document.glossary import TERMS

_MAIN = re.compile(r"(?<=<main )(.*)(?=</main>)", re.DOTALL)
_TAG = re.compile(r"(<[^>]*>)")
_SILENT = ("script", "pre", "code", "svg", "a", "button", "option", "abbr")
"""What holds no sentences, or does something else when it is hovered or reached by keyboard."""
_UNREACHED = ("th", "summary", "li")
"""Scripts make buttons of column titles, a summary is reached itself, and entries of legends may be folded."""
_NAME, _ENTRY, _SECTION = '<span class="name', '<li class="entry"', "<section "


def _pattern(term: str) -> str:
    """The term in the singular and plural; one in small letters may begin a sentence."""
    return f"{re.escape(term)}s?" if term != term.lower() else f"(?i:{re.escape(term)}s?)"


_TERM = re.compile(rf"(?<![\w-])(?:{'|'.join(map(_pattern, sorted(TERMS, key=len, reverse=True)))})(?![\w-])")
_MEANINGS = {term.lower(): escape(meaning) for term, meaning in TERMS.items()}


def explained(html: str) -> str:
    """The page with each term explained once in each section of its main part."""
    return _MAIN.sub(lambda main: _Reading().explained(main[0]), html)


class _Reading:
    """What was met on the way through a page: open elements, and the terms of this section and of the page."""

    def __init__(self) -> None:
        self._open = dict.fromkeys((*_SILENT, *_UNREACHED), 0)
        self._in_name = False
        self._section: set[str] = set()
        self._reached: set[str] = set()

    def explained(self, html: str) -> str:
        """The terms of the text between tags, explained."""
        parts = _TAG.split(html)
        for at, part in enumerate(parts):
            if at % 2:
                self._pass(part)
            elif not self._in_name and not any(self._open[tag] for tag in _SILENT):
                parts[at] = _TERM.sub(self._mark, part)
        return "".join(parts)

    def _pass(self, tag: str) -> None:
        if tag.startswith(_SECTION):
            self._section = set()
        self._in_name = tag.startswith(_NAME) or (self._in_name and tag != "</span>")
        name, is_end = tag.strip("</>").split(None, 1)[0], tag.startswith("</")
        if name == "li":
            self._open[name] = int(tag.startswith(_ENTRY))
        elif name in self._open:
            self._open[name] += -1 if is_end else 1

    def _mark(self, found: re.Match[str]) -> str:
        term = found[0].lower()
        term = term if term in _MEANINGS else term.removesuffix("s")
        if term in self._section:
            return found[0]
        self._section.add(term)
        can_reach = term not in self._reached and not any(self._open[tag] for tag in _UNREACHED)
        self._reached |= {term} if can_reach else set()
        reach = ' tabindex="0"' if can_reach else ""
        return f'<abbr class="term"{reach} title="{_MEANINGS[term]}">{found[0]}</abbr>'
