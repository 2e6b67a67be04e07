"""Pseudonyms of names: numbers by first appearance, or hashes with a key that two reports can share.

```
numbered   kernel 7    kernel 7<2>            range 3 #12
keyed      kernel-3f9a2c41    kernel-3f9a2c41<08fe>    range-77c0aa12 #12
```
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

from nsysdiag.share.redaction.forms import Form, form_of

FAMILY_DIGITS, PART_DIGITS = 8, 4
_SALT = b"nsysdiag redaction 2"
"""Fixed, so that reports of one key agree; the number changes whenever pseudonyms of a key do."""
_COST, _BLOCK, _PARALLEL = 1 << 14, 8, 1
"""What a key is stretched with: 16 MiB and some 40 ms for each that is tried, as RFC 7914 advises for logins."""


@lru_cache(maxsize=8)
def _stretched(key: str) -> bytes:
    """The key of the hashes, which makes each try at a short key as dear as a long one.

    With these constant parameters OpenSSL fails only where it gets no memory, which hashlib reports as a ValueError.
    """
    secret = key.encode("utf-8", "surrogatepass")
    try:
        return hashlib.scrypt(secret, salt=_SALT, n=_COST, r=_BLOCK, p=_PARALLEL, dklen=32)
    except ValueError as error:
        raise MemoryError(f"scrypt: {error}") from error


class Names:
    """The pseudonyms of one report. The same name always gets the same one. ValueError for an empty key."""

    def __init__(self, key: str | None = None) -> None:
        if key == "":
            raise ValueError("the key is empty")
        self._key = None if key is None else _stretched(key)
        self._numbers: dict[tuple[str, ...], dict[str, int]] = {}
        self._known: dict[tuple[str, str], str] = {}

    @property
    def keyed(self) -> bool:
        """Whether the pseudonyms are hashes with a key."""
        return self._key is not None

    def of(self, kind: str, text: str) -> str:
        """The pseudonym of a name; an empty one stays empty."""
        if not text:
            return text
        known = self._known.get((kind, text))
        if known is None:
            form = form_of(kind, text)
            known = self._numbered(form) if self._key is None else self._hashed(form)
            self._known[kind, text] = known
        return known

    def hashed(self, text: str, digits: int) -> str:
        """The beginning of the keyed hash of a text. Without a key there is none: ValueError."""
        if self._key is None:
            raise ValueError("there is no key")
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:digits]

    def number(self, *group: str, text: str) -> int:
        """The number of a text in its group by first appearance, from 1."""
        numbers = self._numbers.setdefault(group, {})
        return numbers.setdefault(text, len(numbers) + 1)

    def _numbered(self, form: Form) -> str:
        token = f"{form.label} {self.number(form.label, text=form.family)}"
        if form.variant:
            token += f"<{self.number(form.label, form.family, text=form.variant)}>"
        if form.exact:
            # The first way of writing is the name itself, so that whole and short names agree.
            instance = self.number(form.label, form.family, form.variant, "", text=form.exact)
            token += f".{instance}" if instance > 1 else ""
        return token + form.counters

    def _hashed(self, form: Form) -> str:
        token = f"{form.label}-{self.hashed(form.family, FAMILY_DIGITS)}"
        if form.variant:
            token += f"<{self.hashed(form.variant, PART_DIGITS)}>"
        if form.exact:
            token += f".{self.hashed(form.exact, PART_DIGITS)}"
        return token + form.counters
