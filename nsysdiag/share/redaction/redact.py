"""Takes the names out of a report: once through it to learn them, once more to replace them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, TypeVar

from msgspec.structs import replace

from nsysdiag.fields import Text
from nsysdiag.ranks.report import RanksReport
from nsysdiag.record import Record
from nsysdiag.report import EvidenceRow, IterationReport, Report
from nsysdiag.share.redaction import forms
from nsysdiag.share.redaction.known_names import is_prose
from nsysdiag.share.redaction.names import Names
from nsysdiag.share.redaction.packed_names import packed_names, repacked
from nsysdiag.share.redaction.public import (
    is_class_of_operation,
    is_public_call,
    is_public_function,
    is_public_gpu,
    is_public_module,
    is_public_table,
    is_public_version,
)
from nsysdiag.share.redaction.sentences import Sentences
from nsysdiag.share.redaction.settings import currency, setting
from nsysdiag.share.redaction.walk import rewritten
from nsysdiag.timeline.facts import TimelineLevels

NUMBERED, KEYED = "numbered", "keyed"
SETTING = "redacted"
"""The setting by which a report says that it was redacted, and how."""
WITHHELD = "(withheld)"
HASH_DIGITS = 16

Redactable = TypeVar("Redactable", bound=Report | RanksReport)
_KINDS = {
    Text.KERNEL: forms.KERNEL,
    Text.RANGE: forms.RANGE,
    Text.SYMBOL: forms.SYMBOL,
    Text.MODULE: forms.MODULE,
    Text.THREAD: forms.THREAD,
    Text.PROCESS: forms.PROCESS,
    Text.FILE: forms.FILE,
    Text.GPU: forms.GPU,
    Text.API: forms.SYMBOL,
}
_LEARNT_LAST = (Text.MODULE, Text.PROCESS, Text.THREAD, Text.FILE)
_KERNEL_TABLE, _RANGE_TABLE = "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"
_CALL_TABLES = re.compile(
    r"CUPTI_ACTIVITY_KIND_(RUNTIME|DRIVER|SYNCHRONIZATION|OVERHEAD)|PROFILER_OVERHEAD|OSRT_API|CU(BLAS|DNN)_EVENTS"
    r"|MPI_[A-Z0-9_]+_EVENTS"
)
_DEVICE_KEY = re.compile(r"gpu-?[0-9]+(-pid[0-9]+)?")
_BEHIND_STEM = re.compile(rf"([ #]([0-9]+|{_DEVICE_KEY.pattern}))*")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}")
_OF_FINDING = rf"f-{_DEVICE_KEY.pattern}-[a-z_]+"
_PLAIN_ID = re.compile(rf"{_OF_FINDING}(-rest)?")
_HASHED_ID = re.compile(rf"(?P<head>{_OF_FINDING}-|s-)(?P<digest>[0-9a-f]{{6}}|[0-9a-f]{{10}})")
_REPORTED = re.compile(r"(nsys reported an? \w+ while capturing(?: \([\d,]+ times\))?: ).*", re.DOTALL)


def redacted(report: Redactable, key: str | None = None) -> Redactable:
    """The report with pseudonyms for all names that the trace brought: kernels, NVTX ranges, functions, libraries,
    threads, processes, files. Numbers, causes, API and OS calls and kinds of operations stay.

    Pseudonyms are numbered by first appearance, or with a `key` hashed, so that the same name has the same pseudonym
    in every report of the key. ValueError for an empty key, and for a report that was redacted before."""
    return redacted_by(report, Names(key))


def redacted_by(report: Redactable, names: Names) -> Redactable:
    """The same with pseudonyms that are known afterwards, for what else goes with the report."""
    if is_redacted(report):
        raise ValueError("the report is redacted already")
    made = rewritten(report, _Redaction(report, names).visit)
    return replace(made, settings={**made.settings, SETTING: KEYED if names.keyed else NUMBERED})


def is_redacted(report: Report | RanksReport) -> bool:
    """Whether a report has pseudonyms for names."""
    return SETTING in report.settings


class _Redaction:
    """What each kind of text becomes, for one report."""

    def __init__(self, report: Report | RanksReport, names: Names) -> None:
        self._names = names
        self._sentences = Sentences(names)
        self._stems: dict[str, str] = {}
        self._several_files = isinstance(report, RanksReport)
        self._late: list[tuple[Text, str]] = []
        rewritten(report, self._learn)
        for text, value in sorted(self._late, key=lambda item: _LEARNT_LAST.index(item[0])):
            self._sentences.learn(_KINDS[text], value)

    def _learn(self, text: Text, record: Record, value: Any) -> Any:
        """The first way through: all names that stand alone, in the order in which they appear."""
        text = _told(text, record)
        if text is Text.PACKED and isinstance(record, TimelineLevels):
            for kind, each in packed_names(record):
                self._learn_one(kind, each)
            return value
        for each in value if isinstance(value, list) else [value]:
            self._learn_one(text, each)
        return value

    def _learn_one(self, text: Text, each: Any) -> None:
        if text is Text.FILE:
            self._learn_file(each)
        elif text in (Text.GPU, Text.API, Text.CURRENCY):
            self._learn_phrase(text, each)
        if text in _KINDS and not self._stays(text, each):
            self._names.of(_KINDS[text], each)
            if text in _LEARNT_LAST:
                self._late.append((text, each))
            else:
                self._sentences.learn(_KINDS[text], each)

    def _learn_phrase(self, text: Text, phrase: str) -> None:
        """A model of a GPU, a currency or what nsys calls its overhead: words of others, and one name together."""
        new = self._one(text, phrase)
        if not is_public_function(phrase) and not (new == phrase and is_prose(phrase)):
            self._sentences.learn_always(phrase, new)

    def _learn_file(self, name: str) -> None:
        """Ranks go by the stems of their files, in sentences too."""
        if stem := PurePath(name).stem:
            self._stems[stem] = self._names.of(forms.FILE, name)
            if self._several_files:
                self._sentences.learn_always(stem, self._stems[stem])

    def visit(self, text: Text, record: Record, value: Any) -> Any:
        """The second way through: what a field becomes."""
        text = _told(text, record)
        if text is Text.PACKED and isinstance(record, TimelineLevels):
            return repacked(record, self._one)
        if isinstance(value, list):
            return [self._one(text, each) for each in value]
        if isinstance(value, dict):
            return self._table(text, value)
        return self._one(text, value)

    def _one(self, text: Text, value: str) -> str:  # noqa: PLR0911
        if text in _KINDS:
            return value if self._stays(text, value) else self._names.of(_KINDS[text], value)
        if text is Text.RANK:
            return self._rank(value)
        if text is Text.CALL:
            return self._sentences.call(value)
        if text is Text.CURRENCY:
            return currency(self._names, value)
        if text is Text.VERSION:
            return value if is_public_version(value) else WITHHELD
        if text is Text.WARNING:
            reported = _REPORTED.fullmatch(value)
            return reported[1] + WITHHELD if reported else self._sentences.without_names(value)
        if text is Text.HASH:
            return self._names.hashed(value, HASH_DIGITS) if self._names.keyed else WITHHELD
        if text is Text.ID:
            return self._id(value)
        return self._sentences.without_names(value)

    def _table(self, text: Text, value: dict[str, Any]) -> dict[str, Any]:
        if text is Text.SETTINGS:
            return {name: setting(self._names, name, each) for name, each in value.items()}
        if text is Text.LABELS:
            return {cause: _renamed(labels, self._sentences.without_names) for cause, labels in value.items()}
        return _renamed(value, lambda name: name if is_public_table(name) else self._names.of("table", name))

    def _rank(self, value: str) -> str:
        """The stem of a file, with a number or a device's key behind it."""
        stem = next((each for each in sorted(self._stems, key=len, reverse=True) if _begins(value, each)), None)
        if stem is not None and _BEHIND_STEM.fullmatch(value, len(stem)):
            return self._stems[stem] + value[len(stem) :]
        return value if _DEVICE_KEY.fullmatch(value) else self._names.of("rank", value)

    def _id(self, value: str) -> str:
        """An id may end in a hash of names, which lists of names would give away: it is hashed again, or numbered."""
        found = _HASHED_ID.fullmatch(value)
        if found is None:
            return value if _PLAIN_ID.fullmatch(value) else self._names.of("id", value)
        head, digest = found["head"], found["digest"]
        if self._names.keyed:
            return head + self._names.hashed(value, len(digest))
        return f"{head}{self._names.number('id', head, text=digest)}"

    def _stays(self, text: Text, value: str) -> bool:
        if text is Text.KERNEL:
            return is_class_of_operation(value)
        if text is Text.MODULE:
            return is_public_module(value)
        if text is Text.SYMBOL:
            return is_public_function(value) or is_public_module(value) or _ADDRESS.fullmatch(value) is not None
        if text is Text.API:
            return is_public_call(value)
        if text is Text.GPU:
            return is_public_gpu(value)
        return text is Text.RANGE and is_public_function(value)


def _told(text: Text, record: Record) -> Text:
    """What a text holds that only its record tells."""
    if text is Text.ROW and isinstance(record, EvidenceRow):
        if _CALL_TABLES.fullmatch(record.table):
            return Text.API
        return {_KERNEL_TABLE: Text.KERNEL, _RANGE_TABLE: Text.RANGE}.get(record.table, Text.SENTENCE)
    if text is Text.ITERATION and isinstance(record, IterationReport):
        return Text.RANGE if record.source == "nvtx" else Text.KERNEL
    return text


def _begins(value: str, stem: str) -> bool:
    return value == stem or value.startswith((f"{stem} ", f"{stem}#"))


def _renamed(values: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """The values by their new names; those of several that become one are numbered apart."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        new = base = rename(name)
        again = 2
        while new in made:
            new, again = f"{base} ({again})", again + 1
        made[new] = value
    return made
