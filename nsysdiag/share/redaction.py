"""Reports without names: a pure function from report to report, applied before anything is written.

What a trace calls things is replaced, everything that was measured stays. The type of a field says what its text holds,
see nsysdiag.fields; `names` has what replaces a name. The way leads twice through the report: once to learn the names,
once more to replace them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import Any, TypeVar

from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import column_from, names_from, to_text
from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.fields import TextKind
from nsysdiag.findings.facts import EvidenceRow
from nsysdiag.iterations.facts import InnerLoop, IterationReport
from nsysdiag.limits import MOST_NAMES_BYTES
from nsysdiag.messages import InputError
from nsysdiag.phrases import KIND_OF, Phrases
from nsysdiag.ranks.report import RanksReport
from nsysdiag.record import Record, rewritten
from nsysdiag.replay.facts import Transform, WhatIf
from nsysdiag.report import Report
from nsysdiag.share import names as forms
from nsysdiag.share.names import (
    Names,
    is_class_of_operation,
    is_public_call,
    is_public_function,
    is_public_gpu,
    is_public_metric,
    is_public_module,
    is_public_symbol,
    is_public_table,
    is_public_version,
    setting,
)
from nsysdiag.timeline.facts import OFF_CPU, TimelineLevels

# The names of a timeline: one packed list for all of its lanes, which tell what each is a name of.

_OF_LANE = {"stream": TextKind.KERNEL, "nvtx": TextKind.RANGE}
_OF_LANE |= dict.fromkeys(("api", "os", "mpi", "openmp"), TextKind.API) | dict.fromkeys(
    ("causes", "steps", "phases", "start", "graphs", "host_functions", "openacc", OFF_CPU), TextKind.SENTENCE
)
# A name that lanes of several kinds share is of the first of these.
_ORDER = (TextKind.KERNEL, TextKind.RANGE, TextKind.API, TextKind.SENTENCE)
_EFFORT = 6
_OURS = 1
"""The first name stands for those that were left out."""


def packed_names(timeline: TimelineLevels) -> list[tuple[TextKind, str]]:
    """Every name with what it is a name of; what no lane shows, as an NVTX range. Raises InputError if the report is
    damaged."""
    kind: dict[int, TextKind] = {}
    try:
        names = names_from(timeline.names, MOST_NAMES_BYTES)
        for text in reversed(_ORDER):
            for lane in timeline.lanes:
                if lane.names and _OF_LANE.get(lane.kind) is text:
                    kind |= dict.fromkeys(distinct_values(column_from(lane.names, lane.count)).tolist(), text)
    except ValueError as error:
        raise InputError("the names in the timeline of this report cannot be read: the file is damaged") from error
    kind |= dict.fromkeys(range(_OURS), TextKind.OWN)
    return [(kind.get(at, TextKind.RANGE), name) for at, name in enumerate(names)]


def repacked(timeline: TimelineLevels, rename: Callable[[TextKind, str], str]) -> str:
    """The packed list with every name as `rename` makes it."""
    names = [name if text is TextKind.OWN else rename(text, name) for text, name in packed_names(timeline)]
    data = json.dumps(names, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return to_text(data, _EFFORT) if names else ""


NUMBERED = "numbered"
SETTING = "redacted"
"""The setting by which a report says that it was redacted, and how."""
WITHHELD = "(withheld)"

Redactable = TypeVar("Redactable", bound=Report | RanksReport | WhatIf)
_NAMES: dict[TextKind, tuple[str, Callable[[str], bool] | None]] = {
    TextKind.KERNEL: (forms.KERNEL, is_class_of_operation),
    TextKind.RANGE: (forms.RANGE, is_public_function),
    TextKind.SYMBOL: (forms.SYMBOL, is_public_symbol),
    TextKind.MODULE: (forms.MODULE, is_public_module),
    TextKind.THREAD: (forms.THREAD, None),
    TextKind.PROCESS: (forms.PROCESS, None),
    TextKind.FILE: (forms.FILE, None),
    TextKind.GPU: (forms.GPU, is_public_gpu),
    TextKind.API: (forms.SYMBOL, is_public_call),
    TextKind.CALL: (forms.SYMBOL, is_public_call),
    TextKind.METRIC: ("metric", is_public_metric),
    TextKind.TABLE: ("table", is_public_table),
}
"""What texts of a kind are the names of, and which stay because every program has them."""
_OF_TRANSFORM = {
    **dict.fromkeys(("kernel", "merge", "stream"), TextKind.KERNEL),
    "finding": TextKind.ID,
    **dict.fromkeys(("without", "async-copies", "overlap", "rank-like", "workers", "ahead", "batch"), TextKind.OWN),
}
"""What a change of a prediction is about, by its option; of others it is an NVTX range."""
_WITH_NAMES = (TextKind.SENTENCE, TextKind.WARNING, TextKind.CALL, TextKind.API)
"""What can hold words around names, such as `cudaMalloc in cublasCreate`; without them it is all words, or a call."""
_CALL_TABLES = re.compile(
    r"CUPTI_ACTIVITY_KIND_(RUNTIME|DRIVER|SYNCHRONIZATION|OVERHEAD)|PROFILER_OVERHEAD|OSRT_API|CU(BLAS|DNN)_EVENTS"
    r"|MPI_[A-Z0-9_]+_EVENTS"
)
_DEVICE_KEY = re.compile(r"gpu-?[0-9]+(-pid[0-9]+)?")
_MPI_RANK = re.compile(rf"MPI rank [0-9]+( {_DEVICE_KEY.pattern})?")
_BEHIND_STEM = re.compile(rf"([ #]([0-9]+|{_DEVICE_KEY.pattern}))*")
_OF_FINDING = rf"f-({_DEVICE_KEY.pattern}-)?[a-z_]+(-({'|'.join(BOTTLENECK_IDS)}))?"
_PLAIN_ID = re.compile(rf"{_OF_FINDING}(-rest)?")
_HASHED_ID = re.compile(rf"(?P<head>{_OF_FINDING}-|s-)(?P<digest>[0-9a-f]{{6}}|[0-9a-f]{{10}})")


def redacted(report: Redactable) -> Redactable:
    """The report with pseudonyms for all names of the trace: kernels, NVTX ranges, functions, libraries, threads,
    processes, files. Numbers, causes, API and OS calls and kinds of operations stay.

    Pseudonyms are numbered by first appearance. ValueError for a report that was redacted before."""
    return redacted_by(report, Names())


def redacted_by(report: Redactable, names: Names) -> Redactable:
    """The same with the caller's `names`, who can then replace names in other files by the same pseudonyms."""
    if is_redacted(report):
        raise ValueError("the report is redacted already")
    made = rewritten(report, _Redaction(report, names).visit)
    return replace(made, settings={**made.settings, SETTING: NUMBERED})


def is_redacted(report: Report | RanksReport | WhatIf) -> bool:
    """Whether a report has pseudonyms for names."""
    return SETTING in report.settings


class _Redaction:
    """What each kind of text becomes, for one report."""

    def __init__(self, report: Report | RanksReport | WhatIf, names: Names) -> None:
        self._names = names
        self._stems: dict[str, str] = {}
        self._sentences: dict[str, str] = {}
        rewritten(report, self._learn)
        self._phrases = self._renamed_phrases(report.phrases)

    def _learn(self, text: TextKind, record: Record, value: Any) -> Any:
        """The first way through: all names that stand alone get their pseudonyms in the order in which they appear."""
        text = _kind_of(text, record)
        if text in _NAMES:
            for each in value if isinstance(value, list | dict) else [value]:
                self._one(text, each)
                if text is TextKind.FILE and (stem := PurePath(each).stem):
                    self._stems[stem] = self._names.of(forms.FILE, each)
        return value

    def _renamed_phrases(self, phrases: Phrases | None) -> Phrases:
        """The phrases with pseudonyms; from now on a sentence of the report is known by them."""
        if phrases is None:
            raise InputError(
                "the report was saved by an older version, which did not tell names from words: it cannot be redacted",
                hint="analyze the trace again with --redact",
            )
        try:
            kinds = {KIND_OF[kind]: names for kind, names in phrases.names.items()}
            new = {kind.name.lower(): [self._one(kind, name) for name in names] for kind, names in kinds.items()}
            made = phrases.renamed(new)
            self._sentences = dict(zip(reversed(phrases.finished()), reversed(made.finished()), strict=True))
        except (KeyError, ValueError) as error:
            raise InputError("the phrases of this report cannot be read: the file is damaged") from error
        return made

    def visit(self, text: TextKind, record: Record, value: Any) -> Any:
        """The second way through: what a field becomes."""
        text = _kind_of(text, record)
        if text is TextKind.PHRASES:
            return self._phrases.names if isinstance(value, dict) else value
        if text is TextKind.PACKED and isinstance(record, TimelineLevels):
            return repacked(record, self._one)
        if isinstance(value, list):
            return [self._one(text, each) for each in value]
        if isinstance(value, dict):
            return self._table(text, value)
        return self._one(text, value)

    def _one(self, text: TextKind, value: str) -> str:
        if text in _WITH_NAMES and value in self._sentences:
            return self._sentences[value]
        if text in _NAMES:
            kind, public = _NAMES[text]
            return value if public and public(value) else self._names.of(kind, value)
        if text in _OTHERS:
            return _OTHERS[text](self, value)
        return value

    def _table(self, text: TextKind, value: dict[str, Any]) -> dict[str, Any]:
        if text is TextKind.SETTINGS:
            return {name: setting(self._names, name, each) for name, each in value.items()}
        if text is TextKind.LABELS:
            return {cause: _renamed(labels, partial(self._one, TextKind.SENTENCE)) for cause, labels in value.items()}
        return _renamed(value, partial(self._one, TextKind.TABLE))

    def _rank(self, value: str) -> str:
        """The stem of a file, with a number or a device's key behind it."""
        longest = sorted(self._stems, key=len, reverse=True)
        stem = next((each for each in longest if value == each or value.startswith((f"{each} ", f"{each}#"))), None)
        if stem is not None and _BEHIND_STEM.fullmatch(value, len(stem)):
            return self._stems[stem] + value[len(stem) :]
        return value if _DEVICE_KEY.fullmatch(value) or _MPI_RANK.fullmatch(value) else self._names.of("rank", value)

    def _id(self, value: str) -> str:
        """An id may end in a hash of names, which lists of names would give away: it is numbered."""
        found = _HASHED_ID.fullmatch(value)
        if found is None:
            return value if _PLAIN_ID.fullmatch(value) else self._names.of("id", value)
        head, digest = found["head"], found["digest"]
        return f"{head}{self._names.number('id', head, text=digest)}"


_OTHERS: dict[TextKind, Callable[[_Redaction, str], str]] = {
    TextKind.RANK: _Redaction._rank,
    TextKind.HASH: lambda _made, _value: WITHHELD,
    TextKind.ID: _Redaction._id,
    TextKind.CURRENCY: lambda made, value: str(setting(made._names, "currency", value)),
    TextKind.VERSION: lambda _, value: value if is_public_version(value) else WITHHELD,
    TextKind.MESSAGE: lambda _made, _value: WITHHELD,
}


def _kind_of(text: TextKind, record: Record) -> TextKind:
    """What a text holds that only its record tells."""
    if text is TextKind.ROW and isinstance(record, EvidenceRow):
        if _CALL_TABLES.fullmatch(record.table):
            return TextKind.API
        kinds = {"CUPTI_ACTIVITY_KIND_KERNEL": TextKind.KERNEL, "NVTX_EVENTS": TextKind.RANGE}
        return kinds.get(record.table, TextKind.SENTENCE)
    if text is TextKind.ITERATION and isinstance(record, IterationReport | InnerLoop):
        return TextKind.RANGE if record.source == "nvtx" else TextKind.KERNEL
    if text is TextKind.TRANSFORM and isinstance(record, Transform):
        return _OF_TRANSFORM.get(record.option, TextKind.RANGE) if record.of.strip("*?") else TextKind.OWN
    return text


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
