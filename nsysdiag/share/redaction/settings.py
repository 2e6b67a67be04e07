"""Settings of a report without names: what they select by, files, prices of GPUs by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import fields

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import Settings
from nsysdiag.events.callchains import file_name
from nsysdiag.events.collectives import KINDS, OTHER, kind_of
from nsysdiag.fields import SettingValue
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.limits import short_name
from nsysdiag.share.redaction.public import is_public_gpu

# Pseudonyms of names, numbered by first appearance: `kernel 7`, `kernel 7<2>`, `range 3 #12`.

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


class Names:
    """The pseudonyms of one report. The same name always gets the same one."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], dict[str, int]] = {}
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, text: str) -> str:
        """The pseudonym of a name; an empty one stays empty."""
        if not text:
            return text
        known = self._known.get((kind, text))
        if known is None:
            known = self._numbered(form_of(kind, text))
            self._known[kind, text] = known
        return known

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


_WORD = re.compile(r"[^\W\d]\w*")
_DEVICE = re.compile(r"gpu-?[0-9]+(-pid[0-9]+)?|[0-9]+")
_CURRENCY = re.compile(r"[A-Z]{3}|[$€£¥₩₹]")
PATTERN = "pattern"


def setting(names: Names, name: str, value: SettingValue) -> SettingValue:
    """A setting without names of the trace, of files and of users."""
    if isinstance(value, dict):
        if name == "gpus":
            return {_gpu(names, gpu): price for gpu, price in value.items() if not isinstance(price, str)}
        return {each: setting(names, each, inner) for each, inner in value.items() if each in _fields()}
    if isinstance(value, list):
        return [_named(names, name, each) if isinstance(each, str) else each for each in value]
    return _named(names, name, value) if isinstance(value, str) else value


def _named(names: Names, name: str, text: str) -> str:
    kind, stays = _KINDS.get(name, ("setting", _is_plain))
    return text if stays(text) else names.of(kind, text)


def _gpu(names: Names, gpu: str) -> str:
    return gpu if is_public_gpu(gpu) or is_public_gpu(gpu.upper()) else names.of(GPU, gpu)


def currency(names: Names, text: str) -> str:
    """A currency, if it is one: three letters or a sign."""
    return text if _is_currency(text) else names.of("currency", text)


def _is_currency(text: str) -> bool:
    return _CURRENCY.fullmatch(text) is not None


def _is_plain(value: str) -> bool:
    """Whether a text is made of numbers and of what the settings themselves are called."""
    return value.isascii() and all(word in _fields() for word in _WORD.findall(value))


@cache
def _fields() -> frozenset[str]:
    return frozenset(_names_within(Settings)) | {"True", "False", "None", "adbc", "sqlite", "e", "numbered"}


def _names_within(struct: type[Struct]) -> Iterator[str]:
    for each in fields(struct):
        yield each.name
        if isinstance(each.type, type) and issubclass(each.type, Struct):
            yield from _names_within(each.type)


def _never(_text: str) -> bool:
    return False


_KINDS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "nvtx": (RANGE, _never),
    "step": (PATTERN, lambda text: text.startswith(("count=", "every="))),
    "config": (FILE, _never),
    "device": (PATTERN, lambda text: _DEVICE.fullmatch(text) is not None or is_public_gpu(text)),
    "communication_patterns": (PATTERN, lambda text: text in Settings().communication_patterns),
    "disabled": ("cause", lambda text: text in CAUSES),
    "currency": ("currency", _is_currency),
}
"""What a text names as a setting, and whether it may stay; of all others only numbers do."""
