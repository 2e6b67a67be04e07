"""Settings of a report without names: what they select by, files, prices of GPUs by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import fields

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import Settings
from nsysdiag.fields import SettingValue
from nsysdiag.share.redaction import names as forms
from nsysdiag.share.redaction.names import Names
from nsysdiag.share.redaction.public import is_public_gpu

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
    return gpu if is_public_gpu(gpu) or is_public_gpu(gpu.upper()) else names.of(forms.GPU, gpu)


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
    "nvtx": (forms.RANGE, _never),
    "step": (PATTERN, lambda text: text.startswith(("count=", "every="))),
    "config": (forms.FILE, _never),
    "device": (PATTERN, lambda text: _DEVICE.fullmatch(text) is not None or is_public_gpu(text)),
    "communication_patterns": (PATTERN, lambda text: text in Settings().communication_patterns),
    "disabled": ("cause", lambda text: text in CAUSES),
    "currency": ("currency", _is_currency),
}
"""What a text names as a setting, and whether it may stay; of all others only numbers do."""
