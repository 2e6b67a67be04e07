"""Settings of a report without names: what they select by, files, prices of GPUs by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import fields

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import Settings
from nsysdiag.share.redaction import forms
from nsysdiag.share.redaction.names import Names
from nsysdiag.share.redaction.public import is_public_gpu

_WORD = re.compile(r"[^\W\d]\w*")
_DEVICE = re.compile(r"gpu-?[0-9]+(-pid[0-9]+)?|[0-9]+")
_CURRENCY = re.compile(r"[A-Z]{3}|[$€£¥₩₹]")
_OF_GPU = "gpus."
PATTERN = "pattern"
_LISTS = ("communication_patterns", "disabled", "cost")


def setting(names: Names, name: str, value: str) -> str:
    """The text of a setting without names of the trace, of files and of whoever made the settings."""
    if name in _LISTS:
        return ", ".join(_part(names, name, part) for part in value.split(", "))
    return _part(names, name, value)


def _part(names: Names, name: str, value: str) -> str:
    if name == "cost":
        return _price(names, value)
    kind, stays = _KINDS.get(name, ("setting", _is_plain))
    return value if stays(value) else names.of(kind, value)


def currency(names: Names, text: str) -> str:
    """A currency, if it is one: three letters or a sign."""
    return text if _CURRENCY.fullmatch(text) else names.of("currency", text)


def _is_device(text: str) -> bool:
    return _DEVICE.fullmatch(text) is not None or is_public_gpu(text)


def _is_cause(text: str) -> bool:
    return text in CAUSES


def _price(names: Names, part: str) -> str:
    """`gpu_hour_cost 2.5`, `currency EUR`, `gpus.H100 3.0`."""
    key, space, number = part.rpartition(" ")
    if key == "currency":
        return f"{key} {currency(names, number)}"
    if key.startswith(_OF_GPU):
        gpu = key.removeprefix(_OF_GPU)
        shown = gpu if is_public_gpu(gpu) or is_public_gpu(gpu.upper()) else names.of(forms.GPU, gpu)
        return f"{_OF_GPU}{shown}{space}{number if _is_plain(number) else ''}"
    return part if _is_plain(part) else names.of("price", part)


def _is_plain(value: str) -> bool:
    """Whether a text is made of numbers and of what the settings themselves are called."""
    return value.isascii() and all(word in _fields() for word in _WORD.findall(value))


@cache
def _fields() -> frozenset[str]:
    return frozenset(_names_within(Settings)) | {"True", "False", "None", "adbc", "sqlite", "e", "numbered", "keyed"}


def _names_within(struct: type[Struct]) -> Iterator[str]:
    for each in fields(struct):
        yield each.name
        if isinstance(each.type, type) and issubclass(each.type, Struct):
            yield from _names_within(each.type)


def _never(_text: str) -> bool:
    return False


_KINDS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "nvtx": (forms.RANGE, _never),
    "config": (forms.FILE, _never),
    "device": (PATTERN, _is_device),
    "communication_patterns": (PATTERN, lambda text: text in Settings().communication_patterns),
    "disabled": ("cause", _is_cause),
}
"""What the text of a setting names, and whether it may stay; of all others only numbers do."""
