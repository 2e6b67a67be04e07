"""Prints the table of all pairs, or of those whose names hold a word: what is saved of a step, true and predicted.

python -m tests.replay.pairs [WORD]
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from nsysdiag.messages import UsageError
from tests.replay.pairs import PAIRS
from tests.replay.pairs.pair import Pair, truth
from tests.replay.pairs.prediction import Outcome, predicted, summary

HEAD = ("true", "predicted", "low", "high", "error")


def main(word: str = "") -> None:
    """Print a line for each pair, in Markdown, and a summary."""
    chosen = [pair for name, pair in PAIRS.items() if word in name]
    print("| Pair |", " | ".join(HEAD), "|")
    print("|---|" + "---:|" * len(HEAD))
    outcomes = [_shown(pair) for pair in chosen]
    made = [each for each in outcomes if each and not each.refused]
    if made:
        found = summary([each for each in outcomes if each])
        print(
            f"\n{found.pairs} pairs, {found.refused} refused: {found.inside:.0%} of the truths lie within the bounds,"
        )
        print(f"{found.nearly:.0%} no further outside than 1% of a step;")
        print(f"the error is {found.median_error:.1%} of a step in the median, {found.largest_error:.1%} at most")


def _shown(pair: Pair) -> Outcome | None:
    try:
        with TemporaryDirectory() as folder:
            outcome = predicted(pair, Path(folder))
    except UsageError as error:
        print(f"| {pair.name} | {truth(pair).saved:.1%} |" + " – |" * (len(HEAD) - 1), error)
        return None
    shares = (outcome.true, outcome.predicted, outcome.low, outcome.high)
    shown = [f"{share:.1%}" for share in shares] + [f"{outcome.error:+.1%}"]
    print(f"| {outcome.name} |", " | ".join(shown), "|", outcome.refused)
    return outcome


if __name__ == "__main__":
    main(*sys.argv[1:2])
