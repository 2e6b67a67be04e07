"""Names inside sentences: those that the report holds elsewhere, those at places where only names stand, and the rest.

```
thread 17 'loader' waited 3.1 ms in read; samples in decode_batch × 3, memcpy of /data/a.bin
           ------                                    ------------                -----------
1. at a place for a thread           2. known from other fields       3. none of our words, no number,
                                                                         no public function
```

A word stays only if all of it is one of our own words, a number, a public name or already a pseudonym. What is attached
to any other word (namespaces, template arguments, parameters) is replaced with it.

A name made of our own words alone ("copy", "step 3") is replaced only at places for names: anywhere else it would take
the sentence's own words with it.
"""

from __future__ import annotations

import re

from nsysdiag.share.redaction.brackets import end_of_name, listed
from nsysdiag.share.redaction.forms import FILE, KERNEL, NAME, PROCESS, RANGE, SYMBOL, THREAD, form_of
from nsysdiag.share.redaction.known_names import KnownNames
from nsysdiag.share.redaction.names import Names
from nsysdiag.share.redaction.public import is_public_function, is_public_module, is_public_table
from nsysdiag.share.redaction.vocabulary import WORD, bare, is_own

_OPEN, _CLOSE = "\ue000", "\ue001"  # around the number of what is already replaced
_KEPT = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_KEPT_WHOLE = re.compile(f"(?:{_KEPT.pattern})+")
_NO_LETTERS = re.compile(r"[!-@\[-`{-~–—…±≥≤°−]*")
"""ASCII without letters, and the signs that our sentences use."""
_NUMBER = re.compile(r"[#~<±+-]?[0-9.,/-]+(ns|us|ms|s|x|B|KiB|MiB|GiB|TiB|kB|MB|GB|Hz|MHz|GHz|%|ppm|h|min)?")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}")
_DEVICE = re.compile(r"gpu-?[0-9]+(-pid[0-9]+)?")
_TIMES = re.compile(r"( \((?:interpreter|garbage collector|profiler)\))?( × [0-9,]{1,20})?$")
# What stands at a place for a name is bounded, so that a search that fails has looked no further than that. A longer
# name is replaced as any other word is.
_QUOTED = (
    (THREAD, re.compile(r"(?<=\bthread )([0-9]{1,20} )'(.{1,400}?)'(?!\w)")),
    (PROCESS, re.compile(r"(?<=\bprocess )([0-9]{1,20} )'(.{1,400}?)'(?!\w)")),
    (RANGE, re.compile(r"(?<=ranges )(named )'(.{1,400})'(?=, each)")),
    (RANGE, re.compile(r"(instances of )“(.{1,400}?)”")),
)
_INSIDE = re.compile(r"(?<=inside NVTX )(.+?)(?=; samples in |$)")
_SAMPLES = re.compile(r"((?:samples in |computes: |is inside \S{1,400}: ))(.+)$")
_OF = " of "
_IN_PATHS = re.compile(r"[/\\.]")


class Sentences:
    """Takes the names out of sentences. `learn` all names of the report first."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.known = KnownNames(names)
        self._done: dict[str, str] = {}

    def learn(self, kind: str, text: str) -> None:
        """A name that sentences may hold, in all its forms. What is learnt first counts."""
        self.known.learn(kind, _without_marks(text))

    def learn_always(self, text: str, token: str) -> None:
        """A name with its pseudonym, which counts wherever it is found, whatever words it is made of."""
        self.known.learn_always(_without_marks(text), token)

    def without_names(self, text: str, unknown: str = NAME) -> str:
        """The sentence with pseudonyms for names; `unknown` is the kind of names that are not known otherwise."""
        key = f"{unknown}\0{text}"
        if key not in self._done:
            self._done[key] = _Sentence(self.names, self.known, unknown).replaced(_without_marks(text))
        return self._done[key]

    def call(self, text: str) -> str:
        """The name of a call, with what it was about: `cudaGraphLaunch of 11 nodes`."""
        return self.known.token(text) or self.without_names(text, SYMBOL)


class _Sentence:
    """One sentence. A pseudonym stands in it as a numbered mark until all of it is done."""

    def __init__(self, names: Names, known: KnownNames, unknown: str) -> None:
        self._names, self._known, self._unknown = names, known, unknown
        self._kept: list[tuple[str, str]] = []

    def replaced(self, text: str) -> str:
        for kind, pattern in _QUOTED:
            text = pattern.sub(lambda found, kind=kind: self._quoted(found, kind), text)  # type: ignore[misc]
        text = self._with_known(text)
        text = _INSIDE.sub(lambda found: self._whole(found[1], RANGE), text)
        text = _SAMPLES.sub(lambda found: found[1] + self._listed(found[2]), text)
        text = self._with_words(text)
        return _KEPT.sub(lambda found: self._kept[int(found[1])][0], text)

    def _keep(self, token: str, original: str) -> str:
        self._kept.append((token, self._original(original)))
        return f"{_OPEN}{len(self._kept) - 1}{_CLOSE}"

    def _original(self, text: str) -> str:
        """What stood there before."""
        return _KEPT.sub(lambda found: self._kept[int(found[1])][1], text)

    def _quoted(self, found: re.Match[str], kind: str) -> str:
        opening, closing = found[0][len(found[1])], found[0][-1]
        name = found[2]
        # A process without a name of its own goes by its main thread's.
        other = self._known.token(name) if kind == PROCESS and not self._names.knows(kind, name) else None
        token = other or self._names.of(kind, name)
        return f"{found[1]}{opening}{self._keep(token, name)}{closing}"

    def _with_known(self, text: str) -> str:
        parts: list[str] = []
        done = 0
        for at, name in self._known.found_in(text):
            parts += [text[done:at], self._keep(self._known.token(name) or "", name)]
            done = at + len(name)
        return "".join((*parts, text[done:]))

    def _whole(self, text: str, kind: str) -> str:
        """A text that is all name."""
        if _KEPT_WHOLE.fullmatch(text):
            return text
        return self._keep(self._names.of(kind, self._original(text)), text)

    def _listed(self, text: str) -> str:
        """`decode × 3, memcpy of a.bin`: functions, and the files that they read."""
        at = _start_of_files(text)
        files = ", ".join(self._whole(each, FILE) for each in text[at:].split(", ")) if at < len(text) else ""
        return ", ".join(map(self._symbol, listed(text[:at]))) + files

    def _symbol(self, text: str) -> str:
        behind = _TIMES.search(text)
        end = behind.start() if behind else len(text)
        name, of, rest = text[:end].partition(" of ")
        if not name or _is_public(name):
            return text
        return self._whole(name, SYMBOL) + of + rest + text[end:]

    def _with_words(self, text: str) -> str:
        """Every word that may not stay replaced, and with it all that is attached to it."""
        parts: list[str] = []
        done = 0
        for found in WORD.finditer(text):
            begin = found.start()
            if begin < done:
                continue
            end = max(found.end(), end_of_name(text, begin)) if self._is_name(found[0]) else found.end()
            if self._stays(text[begin:end]):
                continue
            parts += [text[done:begin], self._replaced_word(text[begin:end])]
            done = end
        return "".join((*parts, text[done:]))

    def _is_name(self, word: str) -> bool:
        return _OPEN in word or not self._stays(word)

    def _stays(self, word: str) -> bool:
        inner = bare(word)
        if _KEPT_WHOLE.fullmatch(inner):
            return True
        if any(pattern.fullmatch(inner) for pattern in (_NO_LETTERS, _NUMBER, _ADDRESS, _DEVICE)):
            return True
        return _is_ours(inner) or is_public_table(inner) or any(map(_is_public, (inner, word)))

    def _replaced_word(self, word: str) -> str:
        path = ("/" in word or "\\" in word) and "(" not in word
        inner = word.rstrip(".!?") if path or "(" in word or "<" in word else bare(word)
        name = self._original(inner)
        token = self._known.token(name) or self._names.of(FILE if path else self._kind(name), name)
        return word.replace(inner, self._keep(token, name), 1)

    def _kind(self, name: str) -> str:
        """A function that is known by its last name alone is of its kind."""
        known = self._known.kind(form_of(SYMBOL, name).family)
        return known if known in (KERNEL, SYMBOL) else self._unknown


def _start_of_files(text: str) -> int:
    """Where the files begin that the last function works on; the end of the text where it names none."""
    at = text.find(_OF, text.rfind(";") + 1)
    named = at >= 0 and _IN_PATHS.search(text, at) is not None
    return at + len(_OF) if named else len(text)


def _without_marks(text: str) -> str:
    return text.replace(_OPEN, "?").replace(_CLOSE, "?")


def _is_public(name: str) -> bool:
    return is_public_function(name) or is_public_module(name)


def _is_ours(word: str) -> bool:
    """One of our words, or several with hyphens between."""
    return is_own(word) or ("/" not in word and all(map(is_own, word.split("-"))))
