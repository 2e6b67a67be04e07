"""The page on predictions says what is so: `scripts/update_goldens` writes its outputs and tables anew."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nsysdiag import Transform, WhatIf, whatif
from nsysdiag.cli.app import app
from nsysdiag.functions import bundled_trace
from nsysdiag.messages import UsageError
from nsysdiag.replay.facts import text_of
from nsysdiag.units import format_ns
from tests.grafting import graft
from tests.replay.pairs import PAIRS, Pair
from tests.replay.pairs.pair import truth
from tests.replay.pairs.prediction import Outcome, summary
from tests.replay.test_pairs import outcome
from tests.shared import Shared

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "what-if.md"
FIXTURES = ROOT / "tests" / "fixtures"
TRACES = sorted(Path(os.environ.get("NSYSDIAG_TRACES", "nowhere")).glob("*.sqlite"))
LOST = "for most of the time synchronizations wait for what the trace does not hold"
WHY = {
    "host code while another thread uses the GPU, without ranges of steps": "no steps are found between both threads",
    "pipe of a thread that computes": "the wait is one for input, and not an io_wait",
    "kernels without rows, halved as well": LOST,
    "host code beside kernels without rows": LOST,
    "sync for kernels without rows": LOST,
    "sync for graphs without rows": LOST,
    "sync of two streams in turns, events not recorded": "no row says why kernels start late: the model is too far off",
    "file read by a thread that is joined": "nothing links the wait to the thread that ends",
    "queued kernels that start late": "no row says why they start late: the model is too far off",
    "two workers in place of one that is fast enough": "no step waits for a worker, so there is none to be seen",
    "four workers in place of two": "most waits have no waker that is known",
}
"""Why a prediction is missing, or the truth is outside of its bounds."""
EXAMPLES = (
    "sync after each kernel of 20 µs",
    "sleep, as its finding says",
    "kernel halved with a sync in each step",
    "host range halved, and kernels are the limit then",
    "pageable copy before other host code",
    "upload in the stream of the kernels",
    "exchange shorter than the kernels",
    "graph in place of launches, and host code is left",
    "slow kernels of one of eight ranks",
    "small kernels fused, launched first",
    "statistics in a stream of their own",
    "two workers in place of one",
    "host a step ahead",
    "two steps in one",
)
CAPTURES: tuple[tuple[str, str, tuple[Transform, ...]], ...] = (
    ("pageable_copies", "pinned_copies", (Transform("async-copies"), Transform("kernel", "*HtoD*", 0.25))),
    ("launch_bound", "graph_replay", (Transform("graphs", "launches"), Transform("without", "sync"))),
)


def same_or_written(name: str, content: str) -> None:
    """The section of the page is what it should be; it is written where goldens are."""
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name}: made by [^\n]*-->\n).*?(<!-- end -->)", flags=re.DOTALL)
    made = pattern.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS") == "1":
        PAGE.write_text(made, encoding="utf-8")
        text = made
    assert len(pattern.findall(text)) == 1
    assert made == text


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(header)
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def printed(*arguments: str) -> str:
    """A command and what it prints."""
    result = CliRunner().invoke(app, ["whatif", *arguments])
    assert result.exit_code == 0
    return f"```text\n$ {shlex.join(['nsysdiag', 'whatif', *arguments])}\n{result.stdout.rstrip()}\n```"


@pytest.mark.slow
@pytest.mark.fixtures
def test_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    packed = (FIXTURES / "sim_launch_bound.sqlite.gz").read_bytes()
    Path("train.sqlite").write_bytes(gzip.decompress(packed))
    Path("demo.sqlite").write_bytes(gzip.decompress(bundled_trace()))
    same_or_written("list", printed("train.sqlite"))
    same_or_written("one", printed("train.sqlite", "--without", "launch_call"))
    same_or_written("refused", printed("demo.sqlite"))


def outcome_of(pair: Pair, shared: Shared) -> Outcome:
    """The outcome; one that is an error is a refusal here."""
    try:
        return outcome(pair, shared)
    except UsageError as error:
        return Outcome(pair.name, truth(pair).saved, 0, 0, 0, refused=str(error))


def row(found: Outcome) -> list[str]:
    if found.refused:
        return [found.name, f"{found.true:.1%}", "–", "–", "–", "–"]
    shares = (found.true, found.predicted, found.low, found.high)
    return [found.name, *(f"{share:.1%}" for share in shares), f"{found.error:+.1%}"]


@pytest.mark.thorough
def test_simulated_programs(shared: Shared) -> None:
    every = [outcome_of(pair, shared) for pair in PAIRS.values()]
    made = [each for each in every if not each.refused]
    failed = [each for each in every if each.refused or not each.inside()]
    others = sorted((each for each in made if each.inside()), key=lambda each: -abs(round(each.error, 3)))
    head = ("Pair", "true", "predicted", "low", "high", "error")
    found = summary(made)
    none, inside, nearly = len(every) - len(made), f"{found.inside:.0%}", f"{found.nearly:.0%}"
    said = (
        f"{len(every)} pairs, {none} without a prediction. {inside} of the truths lie within the bounds,\n"
        f"{nearly} no further outside than 1% of a step. The error is {found.median_error:.1%} of a step in the\n"
        f"median, {found.largest_error:.1%} at most."
    )
    whys = [[*row(each), WHY.get(each.name, "")] for each in failed]
    parts = [said, "Without a prediction, or with the truth outside of the bounds:", table((*head, "why"), whys)]
    parts += ["All others, the largest error first:", table(head, map(row, others))]
    same_or_written("pairs", "\n\n".join(parts))
    known = {each.name: each for each in every}
    examples = [[f"`{text_of(PAIRS[name].transforms) or '--finding ID'}`", *row(known[name])[:3]] for name in EXAMPLES]
    same_or_written("transforms", table(("change", "simulated program", "true", "predicted"), examples))


def captured(name: str, folder: Path) -> Path:
    """A capture with the device that its program computed with."""
    path = folder / f"{name}.sqlite"
    path.write_bytes(gzip.decompress((FIXTURES / f"real_host_{name}.sqlite.gz").read_bytes()))
    log: dict[str, Any] = json.loads((FIXTURES / f"real_host_{name}.json").read_text())
    graft(path, log)
    return path


@pytest.mark.slow
@pytest.mark.fixtures
def test_captured_programs(tmp_path: Path) -> None:
    rows = []
    for suffix in ("", "_2022"):
        for broken, fixed, transforms in CAPTURES:
            found = whatif(captured(broken + suffix, tmp_path), transforms)
            true = whatif(captured(fixed + suffix, tmp_path)).now_ns
            assert abs(found.predicted_ns - true) <= 0.06 * found.now_ns
            ns = (found.now_ns, true, found.predicted_ns, found.low_ns, found.high_ns)
            error = (true - found.predicted_ns) / found.now_ns
            change = f"`{text_of(transforms)}`"
            rows.append([broken + suffix, change, *(format_ns(each) for each in ns), f"{error:+.1%}"])
    head = ("captured program", "change", "step", "step with the fix", "predicted", "low", "high", "error")
    same_or_written("captures", table(head, rows))


def traced(name: str, found: WhatIf) -> list[str]:
    known = found.identity
    length = f"{found.steps} steps" if found.per == "step" and found.steps else found.per
    identity = ["–", "–"] if known is None else ["yes" if known.exact else "no", f"{known.length_error:.2%}"]
    return [name, length, format_ns(found.now_ns), *identity, found.refused or "–"]


@pytest.mark.thorough
@pytest.mark.real
def test_real_traces() -> None:
    rows = [traced(path.stem, whatif(path)) for path in TRACES]
    head = ("trace", "replayed", "length", "exact", "error", "refused")
    same_or_written("traces", table(head, rows))
