"""What the replay predicts of a pair, beside what is true."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from nsysdiag import Settings
from nsysdiag.findings.facts import Finding
from nsysdiag.messages import UsageError
from nsysdiag.pipeline.changes import replayed, whatif
from nsysdiag.replay.facts import Transform
from nsysdiag.report import Report
from nsysdiag.trace.trace import open_trace
from tests.replay.pairs.pair import Pair, Truth, length, simulated

INSIDE, MEDIAN_ERROR = 0.9, 0.05
"""At least this part of the truths lies within the bounds; the median error is at most this part of a step."""
SETTINGS = Settings(timeline=False)
ANY = [Transform("finding")]
"""That something is changed: then long programs are replayed too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Savings as shares of a step: what is true, predicted, and the least and the most that the bounds allow. `refused`
    is the reason where nothing is predicted, else empty."""

    name: str
    true: float
    predicted: float
    low: float
    high: float
    refused: str = ""

    @property
    def error(self) -> float:
        """Predicted less true."""
        return self.predicted - self.true

    def inside(self, slack: float = 0.0) -> bool:
        """Whether the truth lies within the bounds, or no further outside than `slack` of a step."""
        return self.low - slack <= self.true <= self.high + slack


def predicted(pair: Pair, folder: Path) -> Outcome:
    """The outcome of a pair, whose trace is written to a folder. Raises UsageError where its transforms match nothing
    and it is not refusable."""
    (found,) = predictions([pair], folder)
    return found


def predictions(pairs: Sequence[Pair], folder: Path) -> Iterator[Outcome]:
    """The outcomes of fixes of one program, which is simulated and analyzed once."""
    first = pairs[0]
    assert len({repr(each.before) for each in pairs}) == 1, "one program"
    simulation, marks = simulated(first.before, first.gpus, first.capture)
    before = length(simulation, marks, first.steps, first.warm)
    trace = simulation.write(folder / "trace.sqlite")
    with open_trace(trace) as opened:
        found = replayed(opened, SETTINGS, transforms=ANY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsysdiag.pipeline.changes.replayed", lambda *_: found)
        for each in pairs:
            after = length(*simulated(each.after, each.gpus), each.steps, each.warm)
            yield _outcome(each, trace, found.report, Truth(before, after).saved)


def _outcome(pair: Pair, trace: Path, report: Report, true: float) -> Outcome:
    try:
        found = whatif(trace, transforms(pair, report), SETTINGS)
    except UsageError as error:
        if not pair.refusable:
            raise
        return Outcome(pair.name, true, 0.0, 0.0, 0.0, refused=error.message)
    saved = [1 - ns / found.now_ns for ns in (found.predicted_ns, found.high_ns, found.low_ns)]
    return Outcome(pair.name, true, *saved, refused=found.refused or "")


def transforms(pair: Pair, report: Report) -> Sequence[Transform]:
    """The fix of a pair; where it is that of a finding, of the one that takes most."""
    return (Transform("finding", fixing(pair, report).id),) if pair.finding else pair.transforms


def fixing(pair: Pair, report: Report) -> Finding:
    """The finding that a pair fixes."""
    findings = [each for each in report.findings if pair.finding in (each.bottleneck, each.cause)]
    assert findings, f"no finding of {pair.finding}"
    return max(findings, key=lambda each: each.share)


@dataclass(frozen=True, slots=True)
class Summary:
    """Of all outcomes that are not refused: how many truths lie within the bounds, exactly and by 1% of a step, and
    the errors as shares of a step."""

    pairs: int
    refused: int
    inside: float
    nearly: float
    median_error: float
    largest_error: float


def summary(outcomes: Iterable[Outcome]) -> Summary:
    """Raises StatisticsError where all are refused."""
    every = list(outcomes)
    made = [each for each in every if not each.refused]
    errors = [abs(each.error) for each in made]
    return Summary(
        pairs=len(every),
        refused=len(every) - len(made),
        inside=statistics.fmean(each.inside() for each in made),
        nearly=statistics.fmean(each.inside(0.01) for each in made),
        median_error=statistics.median(errors),
        largest_error=max(errors),
    )
