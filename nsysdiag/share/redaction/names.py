"""Pseudonyms of names: numbers by first appearance, or hashes with a key that two reports can share.

```
numbered   kernel 7    kernel 7<2>            range 3 #12
keyed      kernel-3f9a2c41    kernel-3f9a2c41<08fe>    range-77c0aa12 #12
```
"""

from __future__ import annotations

import hashlib
import hmac
import re
from functools import lru_cache

from msgspec import Struct

from nsysdiag.events.callchains import file_name
from nsysdiag.events.collectives import KINDS, OTHER, kind_of
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.limits import short_name

# The ways in which a name is written: whole, short, without counters. All of them are one name.
#
# ```
# void at::native::vectorized_elementwise_kernel<4, AbsFunctor<float>>(int)
#                  vectorized_elementwise_kernel<AbsFunctor<float>, …>       kernel 7<1>
#                  vectorized_elementwise_kernel                             kernel 7
# train step 12        train step #                                          range 3 #12, range 3
# /data/run/loader.py  loader.py                                             file 2
# ```

KERNEL, RANGE, SYMBOL, MODULE = "kernel", "range", "symbol", "module"
THREAD, PROCESS, FILE, NAME = "thread", "process", "file", "name"
GPU = "GPU"
"""The kinds of names, each numbered for itself; `name` is one of unknown kind."""
LONGEST_COUNTER = 6
_COMMUNICATION = re.compile(r"(nccl|rccl|nvshmem)", re.IGNORECASE)
MOST_COUNTERS = 3
"""Epoch, step and micro-batch; four numbers may well be an address."""
_DIGITS = re.compile(r"[0-9]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")


class Form(Struct, frozen=True):
    """`family` is what all ways of writing share, `variant` distinguishes kernels of one template, `exact` what else
    differs; empty where nothing does. `counters` follow the token as they are."""

    family: str
    variant: str = ""
    exact: str = ""
    counters: str = ""
    label: str = ""


def form_of(kind: str, text: str) -> Form:
    """How a name of a kind is written; `label` is what the kind is called. A long name and its short one are one."""
    text = short_name(text)
    if kind == KERNEL:
        normal = normal_kernel(text)
        family = _function(normal)
        return Form(
            family,
            variant="" if normal == family else normal,
            exact="" if text == normal else text,
            label=_communication(text) or KERNEL,
        )
    if kind == RANGE:
        return Form(normal_range(text), counters=_counters(text), label=kind)
    if kind == SYMBOL:
        family = _function(normal_kernel(text))
        return Form(family, exact="" if text == family else text, label=kind)
    if kind in (MODULE, PROCESS, FILE):
        family = file_name(text) or text
        return Form(family, exact="" if text == family else text, label=kind)
    return Form(text, label=kind)


def _function(normal: str) -> str:
    """A normal name without its template arguments."""
    return normal.partition("<")[0].strip() or normal


def _communication(text: str) -> str:
    """`nccl AllReduce`: the class of a kernel that communicates stays; empty for all others."""
    found = _COMMUNICATION.search(text)
    if found is None:
        return ""
    kind = KINDS[kind_of(text)]
    return f"{found[1].lower()} {'kernel' if kind == OTHER else kind}"


def _counters(text: str) -> str:
    """` #12`: the short numbers of a range, by which iterations are distinguished."""
    numbers = [each for each in _DIGITS.findall(_HEX.sub("", text)) if len(each) <= LONGEST_COUNTER]
    counted = normal_range(text) != text and 0 < len(numbers) <= MOST_COUNTERS
    return f" #{'.'.join(numbers)}" if counted else ""


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
