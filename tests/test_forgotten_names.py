"""What would forget that a word of a sentence is a name is no valid type."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts._sentences import LOST, finished
from tests.conftest import ROOT

pytestmark = pytest.mark.thorough

MAKES_THEM = "nsysdiag/typed.py"
LOSING = (
    'f"in {api(call)}"',
    '"{}".format(api(call))',
    'f"in {api(call) if call else None}"',
    'f"in {chosen or api(call)}"',
    "str(api(call))",
    "sentence.upper()",
)
KEEPING = ('say("in {}", api(call))', 'joined(", ", [api(call)])', '"in " + api(call)', 'f"in {plain(api(call))}"')


def errors(*given: str, **environment: str) -> list[str]:
    """The lines of mypy."""
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *given],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.stderr
    return [line for line in run.stdout.splitlines() if ": error: " in line]


def test_a_sentence_becomes_a_plain_text_only_by_asking(tmp_path: Path) -> None:
    head = ["from nsysdiag.fields import Sentence", "from nsysdiag.typed import api, joined, plain, say"]
    head += ["", "", "def said(call: str, chosen: str, sentence: Sentence) -> object:", "    return ("]
    lines = [*head, *(f"        {each}," for each in (*LOSING, *KEEPING)), "    )"]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines) + "\n")
    found = errors(str(program), "--cache-dir", str(tmp_path / "cache"))
    assert all(LOST in each for each in found)
    assert [int(each.split(":")[1]) - len(head) for each in found] == list(range(1, len(LOSING) + 1))


def test_functions_say_by_their_types_where_names_are(tmp_path: Path) -> None:
    """As if a sentence with names were no text: what reads finished reports is left out, whose sentences are texts."""
    found = errors("nsysdiag", "--cache-dir", str(tmp_path / "cache"), NSYSDIAG_PHRASES="apart")
    told = {each for each in found if not finished(each.split(":")[0]) and not each.startswith(MAKES_THEM)}
    assert found
    assert told == set()
