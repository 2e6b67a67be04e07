"""The record of a cause: its texts, its properties for the analysis, and the functions that find its evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np
from msgspec import Struct, toml

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.bottlenecks import BottleneckId
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, Threshold
from nsysdiag.events.calls import cuda_name
from nsysdiag.gaps.gaps import DeviceSide, Explained, LaunchCase
from nsysdiag.programs.facts import FRAMEWORKS


class FrameworkAdvice(Struct, frozen=True, forbid_unknown_fields=True):
    """The advice for one framework: sentences, the key of their source (see `sources`), and the short form that ends a
    causal chain, empty to use the plain one."""

    sentences: tuple[str, ...]
    source: str
    fix: str = ""


class Advice(Struct, frozen=True, forbid_unknown_fields=True):
    """Advice for programs of plain CUDA, and for the frameworks in which it differs. That of the first framework of the
    program that has one replaces `plain`, in the order of FRAMEWORKS. If `plain` is empty, no advice is given.

    ```
    advice(
        "Copy from pinned memory with cudaMemcpyAsync.",
        pytorch=words("DataLoader(pin_memory=True), ...", source="pinned_memory"),
    )
    ```
    """

    plain: tuple[str, ...] = ()
    vllm: FrameworkAdvice | None = None
    sglang: FrameworkAdvice | None = None
    tensorrt_llm: FrameworkAdvice | None = None
    pytorch: FrameworkAdvice | None = None
    jax: FrameworkAdvice | None = None
    tensorflow: FrameworkAdvice | None = None
    cupy: FrameworkAdvice | None = None
    openacc: FrameworkAdvice | None = None
    openmp_target: FrameworkAdvice | None = None
    julia: FrameworkAdvice | None = None
    rocm: FrameworkAdvice | None = None
    mpi: FrameworkAdvice | None = None

    def words(self, frameworks: Iterable[str]) -> FrameworkAdvice | None:
        """The text of the first of these frameworks that has one, in the order of FRAMEWORKS; None: the plain one."""
        wanted = set(frameworks)
        return next((words for framework, words in self.others() if framework in wanted), None)

    def sentences(self, frameworks: Iterable[str]) -> tuple[str, ...]:
        """The advice for a program that uses these frameworks."""
        words = self.words(frameworks)
        return self.plain if words is None else words.sentences

    def fix(self, frameworks: Iterable[str]) -> str:
        """The short form for a program that uses these frameworks, empty if it is the plain one."""
        words = self.words(frameworks)
        return "" if words is None else words.fix

    def others(self) -> Iterator[tuple[str, FrameworkAdvice]]:
        """The frameworks with a text of their own, in the order of FRAMEWORKS."""
        for framework in FRAMEWORKS:
            words = getattr(self, framework.replace("-", "_"), None)
            if words is not None:
                yield framework, words

    def __bool__(self) -> bool:
        return bool(self.plain)


def advice(*plain: str, **frameworks: FrameworkAdvice) -> Advice:
    """Advice of these sentences, and those for the frameworks in which it differs."""
    return Advice(plain, **frameworks)


def words(*sentences: str, source: str, fix: str = "") -> FrameworkAdvice:
    """The advice for one framework."""
    return FrameworkAdvice(sentences, source, fix)


PLAIN = Advice()
"""Nothing of its own."""
DATA = Path(__file__).parents[1] / "data"


class SourceDocument(Struct, frozen=True):
    """A document, the chapter in it, and its address if known."""

    document: str
    chapter: str
    url: str | None = None

    def __str__(self) -> str:
        return f"{self.document}: {self.chapter}"


class RuleWords(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a cause or a rule of findings besides its title and meaning: the file `data/rules/ID.toml`.

    `sources` are keys of `sources()` for the rule and the plain advice. `confirm` describes how to check it in Nsight
    Systems, `confused_with` how to tell it from other causes, by their ids. `variants` has the advice for variants by
    id. A text in place of advice is where that is: `sync.read_back`, the variant of another rule."""

    sources: tuple[str, ...]
    picture: str
    confirm: tuple[str, ...] = ()
    confused_with: dict[str, str] = {}
    advice: Advice | str
    variants: dict[str, Advice | str] = {}

    def advice_for(self, variant: str | None = None) -> Advice:
        """The advice for a variant, PLAIN if it has none of its own; without a variant that of the rule."""
        found = self.advice if variant is None else self.variants.get(variant, PLAIN)
        if isinstance(found, Advice):
            return found
        rule, its = found.split(".")
        return words_of(rule).advice_for(its)

    def every_advice(self) -> tuple[Advice, ...]:
        """The advice of the rule, then that for its variants."""
        return (self.advice_for(), *map(self.advice_for, self.variants))


_reading = Lock()
"""msgspec crashes if two threads are the first to decode a class."""


@cache
def words_of(rule: str) -> RuleWords:
    """The words of the rule with this id. Files are read when they are first asked for: an analysis needs few."""
    with _reading:
        return toml.decode((DATA / "rules" / f"{rule}.toml").read_bytes(), type=RuleWords)


@cache
def sources() -> dict[str, SourceDocument]:
    """The public documents that rules and advice rest on. Only pages that were looked up have an address."""
    return toml.decode((DATA / "sources.toml").read_bytes(), type=dict[str, SourceDocument])


# Variants of a cause that need different fixes.
#
# A variant is recognised by the label of a slice, by its call, or by what is known beside these.


class Hint(Enum):
    """What the launching thread did just before a slice, or what most of its CPU samples or functions are in."""

    AFTER_READ_BACK = auto()
    AFTER_UPLOAD = auto()
    IN_COLLECTOR = auto()
    IN_INTERPRETER = auto()
    IN_OPERATORS = auto()


HINTS = (None, Hint.AFTER_READ_BACK, Hint.AFTER_UPLOAD)
"""Of waits for a device, by what was copied right before (`CallFacts.copied`)."""


class Variant(Struct, frozen=True):
    """`title` is added to that of the cause, empty for none. `fix` is the short form of its plain advice, which ends a
    causal chain. Its advice is in the file of the cause's words, for a cause of a plug-in `advice`; without one, that
    of the cause is used. It is `doubtful` if something else looks the same.
    `labels` are those of a slice, `workers` the causes of the loading worker that it waits for; `call` is a pattern on
    the name of its call. `bottleneck` is that of its time; None means that of the cause."""

    id: str
    title: str
    fix: str
    advice: Advice = PLAIN
    labels: tuple[EvidenceLabel, ...] = ()
    workers: tuple[str, ...] = ()
    call: re.Pattern[str] | None = None
    hint: Hint | None = None
    bottleneck: BottleneckId | None = None
    doubtful: bool = False

    def matches(self, label: EvidenceLabel | None, call: str, hint: Hint | None) -> bool:
        """Is this a slice with this label and call (empty: none)?"""
        if self.hint is not None and self.hint != hint:
            return False
        if self.labels and label not in self.labels:
            return False
        if self.workers and (label is None or label.cause not in self.workers):
            return False
        return self.call is None or self.call.search(cuda_name(call)) is not None


def matching(pattern: str) -> re.Pattern[str]:
    """A pattern for names of calls, looked for anywhere in them."""
    return re.compile(pattern)


class EvidenceRows(Enum):
    """Which rows of the trace show a slice of a cause."""

    OVERHEAD = "the profiler's rows of overhead"
    CALL = "the call of the launching thread"
    LAUNCH = "the call that launched the next operation"
    OS_CALL = "the OS call of the launching thread"
    MPI_CALL = "the MPI call of the launching thread"
    SCHEDULING = "scheduling events, or CPU samples"


class OwnCall(Struct, frozen=True):
    """Launch calls that belong wholly to a cause, unless evidence inside them says more: a flag and a code into
    `labels` for each row of the table of calls, none for the first of these. `described`: the evidence is that label,
    not the name of the call."""

    flags: BoolArray
    labels: tuple[EvidenceLabel, ...]
    label: IntArray | None = None
    described: bool = False

    def labels_of(self, rows: IntArray) -> IntArray:
        """The codes of rows of the table of calls."""
        return np.zeros(len(rows), dtype=np.int8) if self.label is None else self.label[rows]


class Lookalike(Struct, frozen=True):
    """A cause, by its id, that looks like another one on the timeline, and how to tell it from that one."""

    cause: str
    difference: str


HostRule = Callable[[HostEvidence], list[EvidenceLayer]]
OwnCallRule = Callable[[HostEvidence], OwnCall]
DeviceRule = Callable[[DeviceSide], Explained]
BEFORE_THE_QUEUE = 80
"""The `call_order` of a cause without one of its own: before a full launch queue (90), and behind all others that
declare one. Only the order of these numbers counts."""


class Cause(Struct, frozen=True, kw_only=True):
    """One reason for a device to be idle.

    Presentation: `opening` of a causal chain, with {thread}, {call}, {label} and {code} (functions
    in CPU samples). None means the call on the thread, or the title if the device waits. The first matching one of the
    `variants` is used; the last one always matches.
    `rows` are the tables searched for evidence of a slice, in order, then the operation that the device waited for.
    `busy_title` is its title if the device may be busy meanwhile, empty for the same one.
    `shade` is the number of its shade of the bottleneck's colour; None is the next one that no cause declares.

    Judgment: `bottleneck` is the bottleneck of its time, unless a variant names another. `unresolved` causes mean missing
    evidence, which the capabilities `resolved_by` would provide. `accepted` ones are not caused by the host, and
    coverage excludes them. `tables` are those that the rule needs.

    Only a plug-in has the texts of RuleWords here: its `picture`, `sources`, `advice`, `confirm` and `confused_with`.
    Those of other causes are in their file in `data/rules`.

    Time of `follows_wakeups` causes is a wait until another thread wakes this one, whose own cause is then the root
    cause; `sampled`: CPU samples show the code; `names_call`: titles name the call; `overlapped`: the fix is to run
    kernels at the same time, which saves no more than these take, and is one for all places; `before_each`: it takes
    time before each operation of a stream.

    Rules: gaps of the launch case `case` belong wholly to it. `host` finds evidence on the launching thread before the
    launch call, `call` inside it, `own_call` in the call as a whole, `device` after it. Inside the call, causes claim
    in the order of `call_order`, then of the registry. If its evidence is inside the call, `after_call` labels the time
    until the operation begins; None for no label.
    """

    id: str
    title: str
    meaning: str
    side: str
    tables: tuple[str, ...]
    bottleneck: BottleneckId
    variants: tuple[Variant, ...]
    picture: str = ""
    sources: tuple[str, ...] = ()
    advice: Advice = PLAIN
    shade: int | None = None
    confirm: tuple[str, ...] = ()
    confused_with: tuple[Lookalike, ...] = ()
    opening: str | None = None
    thresholds: tuple[Threshold, ...] = ()
    rows: tuple[EvidenceRows, ...] = ()
    unresolved: bool = False
    resolved_by: tuple[str, ...] = ()
    accepted: bool = False
    follows_wakeups: bool = False
    sampled: bool = False
    names_call: bool = False
    overlapped: bool = False
    before_each: bool = False
    busy_title: str = ""
    case: LaunchCase | None = None
    host: HostRule | None = None
    call: HostRule | None = None
    own_call: OwnCallRule | None = None
    call_order: int = BEFORE_THE_QUEUE
    after_call: EvidenceLabel | None = None
    device: DeviceRule | None = None

    @property
    def words(self) -> RuleWords:
        """What is said of it: its file, or its own record if it is a plug-in."""
        if not self.picture:
            return words_of(self.id)
        return RuleWords(
            sources=self.sources,
            picture=self.picture,
            confirm=self.confirm,
            confused_with={each.cause: each.difference for each in self.confused_with},
            advice=self.advice,
            variants={each.id: each.advice for each in self.variants if each.advice},
        )
