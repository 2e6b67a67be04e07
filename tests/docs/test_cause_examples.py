"""Examples of causes show them: the problem is in the first trace, and the fix takes most of it away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes import CAUSES
from nsysdiag.findings.rules import FINDING_RULES
from tests.docs.cause_examples import EXAMPLES, Example, Missing, Recaptured, both, character, findings, ledger, runs
from tests.docs.pages import page
from tests.replay.pairs import PAIRS

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

SHOWN = [name for name, each in EXAMPLES.items() if not isinstance(each, Missing)]
ENOUGH, LEFT = 0.1, 0.5
"""The least share of the time before the fix, and the most of it that the fix leaves."""


def test_every_example_is_on_the_page() -> None:
    """A cause that is added needs none: its own page then says so."""
    assert EXAMPLES.keys() <= CAUSES.keys() | FINDING_RULES.keys()
    assert len(SHOWN) >= 31
    assert len(EXAMPLES.keys() & CAUSES.keys()) >= 31
    headings = re.findall(r"^### `(\w+)`: (.*)$", page("cause-examples.md"), re.MULTILINE)
    titles = {name: (CAUSES.get(name) or FINDING_RULES[name]).title for name in EXAMPLES}
    assert len(headings) == len(titles)
    assert dict(headings) == titles


def share(name: str, report: Report) -> float:
    """How much of the time is due to a cause or finding: in the ledger, or of the account."""
    found = EXAMPLES[name]
    names = {name, found.seen} if isinstance(found, Example) else {name}
    return max(part.get(each, 0.0) for part in (ledger(report), findings(report)) for each in names)


@pytest.mark.sampled(quick=9, normal=3)
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_its_cause(name: str, tmp_path: Path) -> None:
    found = EXAMPLES[name]
    if isinstance(found, Recaptured):
        first, second = both(found, tmp_path)
    else:
        assert isinstance(found, Example)
        before, after, _ = runs(found, tmp_path)
        first, second = before.report, after.report
    assert share(name, first) >= ENOUGH
    assert share(name, second) <= LEFT * share(name, first)


@pytest.mark.slow
def test_a_pair_that_shows_another_cause_is_no_example(tmp_path: Path) -> None:
    """What the test above measures can fail."""
    found = EXAMPLES["sleep"]
    assert isinstance(found, Example)
    assert found.pair in PAIRS
    before, *_ = runs(found, tmp_path)
    assert share("sync", before.report) < ENOUGH


@pytest.mark.parametrize(
    ("kernels", "work", "shown"), [(0, 0, "·"), (0.2, 0.5, "▒"), (0.9, 1, "█"), (0.1, 1, "▓"), (0, 0.8, "▓")]
)
def test_characters_of_a_timeline(kernels: float, work: float, shown: str) -> None:
    assert character(kernels, work) == shown
