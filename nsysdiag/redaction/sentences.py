"""Names inside sentences: those that the report holds elsewhere, those at places where only names stand, and the rest.

```
thread 17 'loader' waited 3.1 ms in read; samples in decode_batch × 3, memcpy of /data/a.bin
           ------                                    ------------                -----------
1. at a place for a thread           2. known from other fields       3. none of our words, no number,
                                                                         no public function
```

A name made of our own words alone ("copy", "step 3") is replaced only at places for names: anywhere else it would take
the sentence's own words with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from nsysdiag.redaction.forms import FILE, NAME, PROCESS, RANGE, SYMBOL, THREAD, written
from nsysdiag.redaction.names import Names
from nsysdiag.redaction.public import is_public_function, is_public_module
from nsysdiag.redaction.vocabulary import WORD, bare, own_words

_KEPT_OPEN, _KEPT_CLOSE = "\ue000", "\ue001"  # around the number of what is already replaced
_KEPT = re.compile(f"{_KEPT_OPEN}(\\d+){_KEPT_CLOSE}")
_HEAD = re.compile(r"\w+|[^\w\s]")
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"[#~<±+-]?[\d.,/-]+(ns|us|ms|s|x|B|KiB|MiB|GiB|TiB|kB|MB|GB|Hz|MHz|GHz|%|ppm|h|min)?")
_IDENTIFIER = re.compile(r"[_:<>(){}\[\]/\\.]|[a-z][A-Z]")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_DEVICE = re.compile(r"gpu-?\d+(-pid\d+)?", re.IGNORECASE)
_TIMES = re.compile(r"( \((?:interpreter|garbage collector|profiler)\))?( × [\d,]+)?$")
_BEFORE = re.compile(r"(^|['“]|NVTX |› | in |before |thread |process |Threads of |\bby )$")
_BEHIND = re.compile(r"\.?$|['”;:]| ›|, | \(| × | in | of | and its like| \d")
_QUOTED = (
    (THREAD, re.compile(r"(?<=\bthread )(\d+ )'(.+?)'(?!\w)")),
    (PROCESS, re.compile(r"(?<=\bprocess )(\d+ )'(.+?)'(?!\w)")),
    (RANGE, re.compile(r"(?<=ranges )(named )'(.+)'(?=, each)")),
    (RANGE, re.compile(r"(instances of )“(.+?)”")),
)
_INSIDE = re.compile(r"(?<=inside NVTX )(.+?)(?=; samples in |$)")
_SAMPLES = re.compile(r"((?:samples in |computes: |is inside \S+: ))(.+)$")
_LISTED = re.compile(r", (?![^<(]*[>)])")
_FILES = re.compile(r"(?<= of )([^;]*[/\\.][^;]*)$")


class Sentences:
    """Takes the names out of sentences. `learn` all names of the report first."""

    def __init__(self, names: Names, device_names: Iterable[str] = ()) -> None:
        self._names = names
        self._tokens: dict[str, str] = {}
        self._by_head: dict[str, list[str]] = {}
        self._always: set[str] = set()
        self._sorted = False
        self._public = {word for name in device_names for word in WORD.findall(name)}
        self._done: dict[str, str] = {}

    def learn(self, kind: str, text: str) -> None:
        """A name that sentences may hold, in all its forms. What is learnt first counts."""
        for form in written(kind, text):
            if form and form not in self._tokens and not is_public_function(form):
                self._tokens[form] = self._names.of(kind, form)
                self._by_head.setdefault(_head(form), []).append(form)

    def learn_always(self, text: str, token: str) -> None:
        """A name with its stand-in, which counts wherever it is found, whatever words it is made of."""
        self._tokens[text] = token
        self._always.add(text)
        self._by_head.setdefault(_head(text), []).append(text)

    def learn_public(self, text: str) -> None:
        """A call that the report names as one: its words stay."""
        self._public.update(WORD.findall(text))

    def without_names(self, text: str, unknown: str = NAME) -> str:
        """The sentence with stand-ins for names; `unknown` is the kind of names that are not known otherwise."""
        key = f"{unknown}\0{text}"
        if key not in self._done:
            self._done[key] = self._replaced(text, unknown)
        return self._done[key]

    def _replaced(self, text: str, unknown: str) -> str:
        kept: list[str] = []

        def keep(token: str) -> str:
            kept.append(token)
            return f"{_KEPT_OPEN}{len(kept) - 1}{_KEPT_CLOSE}"

        text = text.replace(_KEPT_OPEN, "?").replace(_KEPT_CLOSE, "?")
        for kind, pattern in _QUOTED:
            text = pattern.sub(lambda found, kind=kind: self._quoted(found, kind, keep), text)  # type: ignore[misc]
        text = self._known(text, keep)
        text = _INSIDE.sub(lambda found: self._whole(found[1], RANGE, keep), text)
        text = _SAMPLES.sub(lambda found: found[1] + self._listed(found[2], keep), text)
        text = WORD.sub(lambda found: self._word(found[0], unknown, keep), text)
        while _KEPT.search(text):
            text = _KEPT.sub(lambda found: kept[int(found[1])], text)
        return text

    def _quoted(self, found: re.Match[str], kind: str, keep: Callable[[str], str]) -> str:
        opening, closing = found[0][len(found[1])], found[0][-1]
        name = found[2]
        # A process without a name of its own goes by its main thread's.
        other = self._tokens.get(name) if kind == PROCESS and not self._names.knows(kind, name) else None
        token = other or self._names.of(kind, name)
        return f"{found[1]}{opening}{keep(token)}{closing}"

    def _whole(self, text: str, kind: str, keep: Callable[[str], str]) -> str:
        return text if _KEPT.search(text) else keep(self._names.of(kind, text))

    def _listed(self, text: str, keep: Callable[[str], str]) -> str:
        """`decode × 3, memcpy of a.bin`: functions, and the files that they read."""
        files = _FILES.search(text)
        if files is not None:
            text = text[: files.start()] + ", ".join(self._whole(each, FILE, keep) for each in files[1].split(", "))
            return self._listed_symbols(text[: files.start()], keep) + text[files.start() :]
        return self._listed_symbols(text, keep)

    def _listed_symbols(self, text: str, keep: Callable[[str], str]) -> str:
        return ", ".join(self._symbol(each, keep) for each in _LISTED.split(text))

    def _symbol(self, text: str, keep: Callable[[str], str]) -> str:
        behind = _TIMES.search(text)
        end = behind.start() if behind else len(text)
        name, of, rest = text[:end].partition(" of ")
        if not name or _KEPT.search(name) or is_public_function(name) or is_public_module(name):
            return text
        return keep(self._names.of(SYMBOL, name)) + of + rest + text[end:]

    def _known(self, text: str, keep: Callable[[str], str]) -> str:
        """Names of the report: the longest that begins at a word and ends at one's end."""
        if not self._sorted:
            for forms in self._by_head.values():
                forms.sort(key=len, reverse=True)
            self._sorted = True
        parts: list[str] = []
        done = 0
        for found in _HEAD.finditer(text):
            at = found.start()
            if at < done or found[0] not in self._by_head:
                continue
            name = next((each for each in self._by_head[found[0]] if self._stands(each, text, at)), None)
            if name is not None:
                parts += [text[done:at], keep(self._tokens[name])]
                done = at + len(name)
        return "".join((*parts, text[done:]))

    def _stands(self, name: str, text: str, at: int) -> bool:
        if not text.startswith(name, at):
            return False
        end = at + len(name)
        if end < len(text) and _wordy(text[end]) and _wordy(name[-1]):
            return False
        return (
            name in self._always or not _is_ours(name) or bool(_BEFORE.search(text, 0, at) and _BEHIND.match(text, end))
        )

    def _word(self, word: str, unknown: str, keep: Callable[[str], str]) -> str:
        if _KEPT_OPEN in word or self._may_stay(word):
            return word
        path = "/" in word or "\\" in word
        inner = word.rstrip(".!?") if path else bare(word)
        return word.replace(inner, keep(self._names.of(FILE if path else unknown, inner)))

    def _may_stay(self, word: str) -> bool:
        inner = bare(word)
        if not _LETTERS.search(inner) or word in self._public or inner in self._public or is_public_module(word):
            return True
        if any(pattern.fullmatch(inner) for pattern in (_NUMBER, _ADDRESS, _DEVICE)):
            return True
        return _ours(inner) or is_public_function(inner) or is_public_module(inner)


def _head(text: str) -> str:
    found = _HEAD.search(text)
    return found[0] if found else ""


def _wordy(character: str) -> bool:
    return character.isalnum() or character == "_"


def _ours(word: str) -> bool:
    """One of our words, or several with hyphens between."""
    known = own_words()
    return word.lower() in known or ("/" not in word and all(part.lower() in known for part in word.split("-")))


def _is_ours(name: str) -> bool:
    """Whether a name reads like a part of our sentences: words of ours, and no identifier."""
    return not _IDENTIFIER.search(name) and all(word.lower() in own_words() for word in _LETTERS.findall(name))
