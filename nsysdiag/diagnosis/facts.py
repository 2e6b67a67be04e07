"""The diagnosis of a job as plain data: one bottleneck by one account, and the saving of its fix."""

from __future__ import annotations

from typing import NamedTuple

from nsysdiag import bottlenecks
from nsysdiag.bottlenecks import UNKNOWN
from nsysdiag.fields import Count, HashedId, Index, Ns, OwnText, Sentence, Share
from nsysdiag.record import Record
from nsysdiag.units import format_ns, format_share, format_two_ns

KERNELS = ("kernels", "parallelism")
"""Compute, which is one candidate for the bottleneck whether it fills the GPU or not."""
WAITS = "sync"
"""The bottleneck of waits for a device."""
COUNTED_BEFORE = "as synchronization before it"
"""End of the note on a finding of which time is charged to a wait."""
FULL_LINK = "full_link"
"""The variant of exposed copies that run all the time."""
NO_DECIMALS = (0.0995, 0.995)
"""Predicted shares from, and below: they are shown in whole per cent, and never as all."""
OVERHEAD = "profiler"
UNSEEN = "host code outside CUDA calls"
"""Unknown time in a trace without OS calls, scheduling events and CPU samples."""
NO_WORK, UNRESOLVED = "no-gpu-work", "unresolved"
"""Verdicts on a device on which nothing ran, and on one whose bottleneck is unknown."""
CANNOT_TELL = "the trace cannot tell"
"""Behind bounds that are too far apart for a figure."""
PACED = "The loop is paced at {}: it waits for that time in each step, so what is saved makes the wait longer."
LIKELY_BELOW = 0.5
"""Share of the time behind a claim that has evidence: below it is likely at best."""
REPLAY = "replay"
"""How a saving was found."""
UNKNOWN_PART = "an unknown part"
TOO_LONG = "too many operations for a replay in the report"
"""What is said of a saving without a replay, if that would take too long: no idle time is a bound. Once one cause is
gone, launches may run ahead, and what other causes take is hidden behind kernels."""
NOTABLE_UNKNOWN = 0.05
"""Share of the judged time. If less of it is unexplained or in unnamed host code, another capture would not change what
to do first."""


def noun_of(bottleneck: str, *, host_unseen: bool = False) -> str:
    """A bottleneck inside a sentence, in a trace that may show nothing of the host but its CUDA calls."""
    if host_unseen and bottleneck == UNKNOWN:
        return UNSEEN
    return bottlenecks.noun_of(bottleneck)


class TooMany(str):
    """Why nothing is replayed: that would take too long."""

    __slots__ = ()


class AtMost(str):
    """Why nothing is replayed as a whole; `share` is the most that the replays of its parts allow to be saved."""

    __slots__ = ("share",)

    def __new__(cls, why: str, share: float) -> AtMost:
        """The reason, and the share."""
        found = super().__new__(cls, why)
        found.share = share
        return found

    share: float


class Saves(Record, frozen=True):
    """How much shorter the judged step or window gets if a finding is fixed: `ns`, between `low_ns` and `high_ns`,
    of its length `of_ns`: the mean of the replayed steps, or the window; without a replay the mean step. `per` is
    `step` or `window`. `method` is `replay` for a prediction, `bound` for an upper bound `high_ns`, with the idle
    time that the finding takes as `ns`; `reason` then says why nothing was predicted. With `cannot_tell` the bounds
    are too far apart for `ns` to say anything. Without a replay it says that one would take too long: any part may
    be saved. `paced_ns` is the time of a step that the loop waits for, None if it waits for none that is known.
    `mean_of` is the number of replayed steps, if their mean is not that of all steps; else None."""

    ns: Ns
    low_ns: Ns
    high_ns: Ns
    per: OwnText
    of_ns: Ns
    method: OwnText
    reason: OwnText = ""
    cannot_tell: bool = False
    paced_ns: Ns | None = None
    mean_of: Count | None = None

    @property
    def has_bounds(self) -> bool:
        """Whether a lower bound of the saving is known."""
        return self.method == REPLAY and self.low_ns > 0

    @property
    def is_unknown(self) -> bool:
        """Whether there is no bound, either: nothing was replayed, and all of the time may be saved."""
        return self.cannot_tell and self.method != REPLAY

    @property
    def shown_ns(self) -> int:
        """The time shown with the share: the prediction, or the upper bound."""
        return self.ns if self.has_bounds else self.high_ns

    @property
    def share(self) -> float:
        """The share of the step or window that it saves, 0 of no time."""
        return self.ns / self.of_ns if self.of_ns else 0.0

    @property
    def most(self) -> float:
        """The largest share of the step or window that it may save."""
        return self.high_ns / self.of_ns if self.of_ns else 0.0

    @property
    def figure(self) -> str:
        """`up to 12.3%`, or both bounds of a replay: `31 to 36%`, `36%` if they are the same. Bounds too far apart
        for a figure are `anywhere between 25 and 60%`."""
        high = format_share(self.high_ns, self.of_ns)
        if self.is_unknown:
            return UNKNOWN_PART
        if not self.has_bounds:
            return f"up to {high}"
        if self.cannot_tell:
            return f"anywhere {between(self.low_ns, self.high_ns, self.of_ns)}"
        low, high = _whole_percent(self.low_ns, self.of_ns), _whole_percent(self.high_ns, self.of_ns)
        return high if low == high else f"{low.removesuffix('%')} to {high}"

    @property
    def whole(self) -> str:
        """What the figure is a share of."""
        return "a step" if self.per == "step" else "the judged time"

    @property
    def of(self) -> str:
        """What the figure is a share of, and how much time that is: `of a step (4.1 ms)`, with the length of the step
        that was replayed, as other lengths of steps are medians."""
        if self.is_unknown:
            return f"of {self.whole}: {TOO_LONG}"
        return f"of {self.whole} ({self.time}){f': {CANNOT_TELL} how much' if self.cannot_tell else ''}"

    @property
    def time(self) -> str:
        """How much time it saves; both bounds if the replay cannot tell."""
        if self.cannot_tell:
            most = format_ns(self.high_ns)
            return format_two_ns(self.low_ns, self.high_ns, " to ") if self.low_ns else most
        if self.method == REPLAY and self.per == "step":
            which = f", the mean of {self.mean_of} replayed steps" if self.mean_of else ""
            return format_two_ns(self.shown_ns, self.of_ns, " of ") + which
        about = "about " if self.has_bounds and self.low_ns < self.high_ns else ""
        return about + format_ns(self.shown_ns)

    @property
    def words(self) -> str:
        """`up to 12.3% of a step (4.1 ms)`."""
        return f"{self.figure} {self.of}"


def between(low_ns: int, high_ns: int, of_ns: int) -> str:
    """Two shares that are far apart: `between 25 and 60%`."""
    low, high = _whole_percent(low_ns, of_ns), _whole_percent(high_ns, of_ns)
    return f"between {low.removesuffix('%')} and {high}"


def _whole_percent(ns: int, of_ns: int) -> str:
    """Predictions of a tenth and more have no decimals."""
    share = ns / of_ns if of_ns else 0.0
    return f"{100 * share:.0f}%" if NO_DECIMALS[0] <= share < NO_DECIMALS[1] else format_share(ns, of_ns)


class Predicted(NamedTuple):
    """What a fix saves of the replayed step or window (`per`) of length `of_ns`: `ns`, between `low_ns` and
    `high_ns`. Or the `reason` why that is not predicted. `paced_ns` is as in `Saves`, 0 for none; `steps` is how many
    were replayed. `more` is a sentence: why `high_ns` may be true; empty if it is about `ns`."""

    per: str
    of_ns: int
    ns: int = 0
    low_ns: int = 0
    high_ns: int = 0
    cannot_tell: bool = False
    reason: str = ""
    paced_ns: int = 0
    steps: int = 0
    more: str = ""


class Part(Record, frozen=True):
    """A bottleneck and its share of the judged time."""

    bottleneck: OwnText
    share: Share


class Diagnosis(Record, frozen=True):
    """What holds the job up. `bottleneck` is the largest part of the judged time, `share` its part of that, `second`
    the next one of 10% or more. `basis` says what is judged: `steady`, phases that repeat; `phase`, one that repeats
    two to four times; `cold`, the start of a program that has no steady state; `window`, everything; `none`, no GPU
    rows. `phase` is the index of the headline's phase in the report's phases. `action` is the finding that would save
    most, `saves` how much. If none has a saving and kernels lead, it is the finding on kernels. `findings` are in the
    order of their savings. `paced_ns` is the time of a step that the loop waits for, None if it waits for none.
    `host` are lines on the threads of a trace without GPU activity. `fix_first` is the id of the finding that `action`
    is about; None without an action, and in reports of older versions."""

    headline: Sentence
    bottleneck: OwnText
    share: Share
    basis: OwnText
    phase: Index | None
    second: Part | None
    action: Sentence | None
    saves: Saves | None
    unknown_share: Share
    frameworks: list[OwnText]
    findings: list[HashedId]
    gpus_present: Count | None
    gpus_used: Count
    paced_ns: Ns | None = None
    host: list[Sentence] = []
    fix_first: HashedId | None = None
