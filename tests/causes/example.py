"""What an example of a cause is: a trace of a few rows and the ledger that follows from them by hand.

Every example is a function marked `fires` or `spares` with the id of a cause. It returns a `Ledgered` trace, and its
docstring draws the case. Unless an example says otherwise it starts from one of three traces:

```
late(300_000)      10_000  110_000                  280_000  290_000 300_000  400_000
device             [===A===)........................................[===B===)
thread           [A]       |---- host: 170_000 ----|[launch B ]|-10_000-|

issued(150_000)    10_000  110_000            150_000  250_000
device             [===A===)..................[===B===)
thread           [A][B]                       B was launched long ago

issuing()          10_000       110_000                200_000        220_000           300_000  400_000
device             [=====A======).....................................................[===B===)
thread           [A]        [launch B: 90_000 of it idle)|-- 20_000 --|--- 80_000 ------|
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsysdiag.config.settings import Settings
from tests.builder import MAIN, TraceBuilder

if TYPE_CHECKING:
    from tests.builder import ThreadId

NEIGHBOUR: ThreadId = (4242, 4300)
"""Another thread of the same process."""
STRANGER: ThreadId = (5000, 5000)
"""A thread of another process."""

AWAY_FROM_THE_LAUNCH = 170_000
"""The part of the gap of `late` before the launch."""
CALL = {"launch_call": 10_000, "launch_latency": 10_000}
"""What the launch of B in `late` costs."""


LEDGER_ALONE = Settings(replay=False, timeline=False)


@dataclass(frozen=True, slots=True)
class Ledgered:
    """A trace with the whole ledger of its device `key` (None: its only one), and labels and evidence of some causes.

    `labels` are those of the causes named in it, None for none; `evidence` holds for each cause a text that one of its
    slices has.
    """

    trace: TraceBuilder
    ledger: dict[str, int]
    labels: dict[str, dict[str, int] | None] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    settings: Settings = LEDGER_ALONE
    key: str | None = None


Build = Callable[[], Ledgered]


@dataclass(frozen=True, slots=True)
class Example:
    """One case of a cause: it explains time (`fires`), or it must not."""

    cause: str
    fires: bool
    build: Build

    @property
    def name(self) -> str:
        return f"{self.cause}-{'fires' if self.fires else 'spares'}-{self.build.__name__}"


EXAMPLES: list[Example] = []


def fires(cause: str) -> Callable[[Build], Build]:
    """Marks an example in which the cause takes time."""
    return _example(cause, fires=True)


def spares(cause: str) -> Callable[[Build], Build]:
    """Marks a near miss: the cause takes nothing."""
    return _example(cause, fires=False)


def _example(cause: str, *, fires: bool) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        EXAMPLES.append(Example(cause, fires, build))
        return build

    return register


def late(at: int = 300_000, *, schema: str = "3.13.2") -> TraceBuilder:
    """B starts at `at`, 10 µs after its launch call of 10 µs; the host's part is [110_000, at - 20_000)."""
    return first(schema).kernel(at, at + 100_000, launch=(at - 20_000, at - 10_000))


def issued(at: int = 150_000, *, schema: str = "3.13.2", stream: int = 7) -> TraceBuilder:
    """B was launched before A ran and starts at `at`: all of [110_000, at) is the device's."""
    return first(schema).kernel(at, at + 100_000, launch=(6_000, 9_000), stream=stream)


def issuing(*, schema: str = "3.13.2") -> TraceBuilder:
    """The call that launches B runs from 100_000 to 200_000; B starts at 300_000."""
    return first(schema).kernel(300_000, 400_000, launch=(100_000, 200_000))


def first(schema: str = "3.13.2") -> TraceBuilder:
    """A alone: [10_000, 110_000) on stream 7."""
    return TraceBuilder(schema=schema).kernel(10_000, 110_000, launch=(1_000, 5_000), thread=MAIN)
