"""The names in the sentences of a report, stored next to the finished sentences.

```
sentence       "thread 17 'loader' waited 3.10 ms in read"
phrases        names      {"thread": ["loader"], "api": ["read"]}
               sentences  ["thread 17 '{thread[0]}' waited 3.10 ms in {api[0]}"]
```

A sentence is a format string of Python over the lists of names: `sentence.format_map(names)` is what the report says.
`{range[0]:.60}` is the beginning of a long name. Sentences without names are not listed. So names can be replaced
without parsing sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.record import Record, rewritten
from nsysdiag.typed import Part, Phrase

_ID_OF = {kind: kind.name.lower() for kind in TextKind}
KIND_OF = {name: kind for kind, name in _ID_OF.items()}
"""The kind of name of each list, by its key."""
_FIELD = re.compile(r"\{\{|\}\}|\{([a-z]{1,16})\[([0-9]{1,9})\](?::\.([0-9]{1,9}))?\}|[{}]")
_UNCHANGED = (TextKind.OWN, TextKind.PACKED, TextKind.SETTINGS, TextKind.TABLE)


class Phrases(Record, frozen=True):
    """Every sentence of the report with a name in it, and the names by what they are names of."""

    names: Annotated[dict[str, list[str]], TextKind.PHRASES]
    sentences: Annotated[list[str], TextKind.PHRASES]

    def finished(self) -> list[str]:
        """All sentences as the report has them. Raises ValueError if they are not such format strings."""
        return list(map(typed.plain, self.with_names()))

    def with_names(self) -> list[Phrase]:
        """All sentences with names that know what they are names of. Raises ValueError as `finished`."""
        return [Phrase(*self._parts(sentence)) for sentence in self.sentences]

    def typed(self) -> dict[str, Phrase]:
        """The sentences by their finished text. Raises ValueError as `finished`."""
        return {typed.plain(each): each for each in self.with_names()}

    def renamed(self, names: dict[str, list[str]]) -> Phrases:
        """The same with other names, shown in full, as a pseudonym must not be cut."""
        return Phrases(names=names, sentences=[_FIELD.sub(_whole, sentence) for sentence in self.sentences])

    def _parts(self, sentence: str) -> Iterator[Part]:
        done = 0
        for found in _FIELD.finditer(sentence):
            yield sentence[done : found.start()]
            yield from self._name(found) if found[1] else (_brace(found),)
            done = found.end()
        yield sentence[done:]

    def _name(self, found: re.Match[str]) -> Iterable[Part]:
        kind, number, shown = found.groups()
        names = self.names.get(kind, ())
        if kind not in KIND_OF or int(number) >= len(names):
            raise ValueError(f"there is no {kind} {number}")
        return typed.name(KIND_OF[kind], names[int(number)], None if shown is None else int(shown)).parts


def _brace(found: re.Match[str]) -> str:
    if len(found[0]) == 1:
        raise ValueError("a brace stands alone")
    return found[0][0]


def _whole(found: re.Match[str]) -> str:
    return found[0] if found[3] is None else f"{{{found[1]}[{found[2]}]}}"


AnyReport = TypeVar("AnyReport", bound=Record)


def finished(report: AnyReport, packed: Iterable[Sentence] = ()) -> AnyReport:
    """The report with its sentences as readers see them, and with the names in them in `phrases`. `packed` are
    sentences that the report holds packed."""
    found = _Names()
    for text in packed:
        found.text(text)
    made = rewritten(report, found.visit)
    return replace(made, phrases=found.phrases())


def unfinished(records: list[AnyReport], phrases: Phrases | None) -> list[AnyReport]:
    """Records of a report with typed names in their sentences, as before `finished`, as far as its `phrases` hold
    them."""
    try:
        known = phrases.typed() if phrases is not None else {}
    except ValueError:
        return records

    def visit(text: TextKind, _record: Record, value: Any) -> Any:
        if text is not TextKind.SENTENCE:
            return value
        return [known.get(each, each) for each in value] if isinstance(value, list) else known.get(value, value)

    return [rewritten(each, visit) for each in records]


class _Names:
    """Collects names by kind, and sentences by their finished text."""

    def __init__(self) -> None:
        self._names: dict[TextKind, dict[str, int]] = {}
        self._sentences: dict[str, str] = {}

    def phrases(self) -> Phrases:
        names = {_ID_OF[kind]: list(known) for kind, known in self._names.items()}
        return Phrases(names=names, sentences=list(self._sentences.values()))

    def visit(self, text: TextKind, _record: Record, value: Any) -> Any:
        """The new value of a field."""
        if text in _UNCHANGED:
            return value
        if isinstance(value, list):
            return list(map(self.text, value))
        if isinstance(value, dict):
            if text is not TextKind.LABELS:
                return value
            return {key: {self.text(label): ns for label, ns in labels.items()} for key, labels in value.items()}
        return self.text(value)

    def text(self, text: Sentence) -> str:
        """The text as readers see it."""
        plain = typed.plain(text)
        if typed.has_names(text) and plain not in self._sentences:
            self._sentences[plain] = "".join(map(self._part, typed.parts(text)))
        return plain

    def _part(self, part: Part) -> str:
        if isinstance(part, str):
            return part.replace("{", "{{").replace("}", "}}")
        known = self._names.setdefault(part.kind, {})
        shown = "" if part.shown is None else f":.{part.shown}"
        return f"{{{_ID_OF[part.kind]}[{known.setdefault(part.text, len(known))}]{shown}}}"
