"""Settings of a report without names: what they select by, files, prices of GPUs by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import fields

from nsysdiag.config import Settings
from nsysdiag.redaction import forms
from nsysdiag.redaction.names import Names
from nsysdiag.redaction.public import is_public_gpu
from nsysdiag.redaction.vocabulary import is_own

_WORD = re.compile(r"[^\W\d]\w*")
_DEVICE = re.compile(r"gpu-?[0-9]+(-pid[0-9]+)?|[0-9]+")
_CURRENCY = re.compile(r"[A-Z]{3}|[$€£¥₩₹]")
_OF_GPU = "gpus."
PATTERN = "pattern"
_COMMUNICATION = Settings().communication_patterns


def setting(names: Names, name: str, value: str) -> str:
    """The text of a setting without names of the trace, of files and of whoever made the settings."""
    if name == "nvtx":
        return names.of(forms.RANGE, value)
    if name == "config":
        return names.of(forms.FILE, value)
    if name == "device":
        return value if _DEVICE.fullmatch(value) or is_public_gpu(value) else names.of(PATTERN, value)
    if name == "communication_patterns":
        return ", ".join(each if each in _COMMUNICATION else names.of(PATTERN, each) for each in value.split(", "))
    if name == "disabled":
        return ", ".join(each if _is_cause(each) else names.of("cause", each) for each in value.split(", "))
    if name == "cost":
        return ", ".join(_price(names, part) for part in value.split(", "))
    return value if _is_plain(value) else names.of("setting", value)


def currency(names: Names, text: str) -> str:
    """A currency, if it is one: three letters or a sign."""
    return text if _CURRENCY.fullmatch(text) else names.of("currency", text)


def _is_cause(text: str) -> bool:
    """Whether a text reads like the id of a cause, which are words of the analysis."""
    return _WORD.fullmatch(text) is not None and is_own(text)


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
