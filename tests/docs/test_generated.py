"""Sections that are made of the program are those of today: `scripts/update_goldens` writes them anew."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import nsysdiag
from nsysdiag.causes import CAUSES
from nsysdiag.cli.app import app
from nsysdiag.cli.help import grouped
from nsysdiag.findings.rules import FINDING_RULES
from nsysdiag.formats import FORMATS
from nsysdiag.formats.html.page import TERMS
from nsysdiag.formats.tables import TABLES
from nsysdiag.functions import bundled_trace
from scripts._gallery.entries import ENTRIES, Entry
from scripts._gallery.page import table as entries_table
from tests.causes.test_added import SOURCE, WORDS
from tests.comparison.programs import Program
from tests.docs import cause_examples, thresholds
from tests.docs.pages import CONTRIBUTING, DOCS, README, ROOT, page, text
from tests.simulator import CUDA_ONLY, EVERYTHING
from tests.simulator.engine import MS
from tests.simulator.scenarios import SCENARIOS
from tests.trace.test_added_format import SOURCE as FORMAT_SOURCE

if TYPE_CHECKING:
    from tests.simulator import Simulation
    from tests.simulator.capture import Capture

COMMANDS: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]


def block(content: str, language: str = "text") -> str:
    return f"```{language}\n{content.rstrip()}\n```"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(header)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def printed(*arguments: str, until: str = "") -> str:
    """What a command prints, up to the line that begins with `until`."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    at = next((at for at, line in enumerate(lines) if until and line.strip().startswith(until)), len(lines))
    return block("\n".join(lines[:at]))


@cache
def demo() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "nsysdiag", "demo", "-o", f"{folder}/demo.html"]
        return block(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode())


def ranks() -> str:
    Path("demo.sqlite").write_bytes(gzip.decompress(bundled_trace()))
    return printed("ranks", "demo.sqlite", "-o", "ranks.html", until="Imbalance")


def loader(workers: int, name: str) -> str:
    """The trace of a training with so many data loaders, which take longer to read than a step."""
    return Program(workers=workers, seed=workers).write(Path(name)).name


def analyzed() -> str:
    return printed("analyze", loader(1, "train.sqlite"), "-o", "train.html", until="Findings")


def predicted() -> str:
    return printed("whatif", loader(1, "train.sqlite"), "--without", "data_loading", until="Idle time")


def compared() -> str:
    before, after = loader(1, "train.sqlite"), loader(3, "fixed.sqlite")
    return printed("compare", before, after, "-o", "compare.html", until="The job")


def causes() -> str:
    rows = ((f"`{cause.id}`", cause.title, cause.meaning) for cause in CAUSES.values())
    return table(("cause", "title", "meaning"), rows)


def findings() -> str:
    rows = ((f"`{rule.id}`", rule.title, rule.meaning) for rule in FINDING_RULES.values())
    return table(("finding", "title", "meaning"), rows)


def terms() -> str:
    return table(("term", "meaning"), TERMS.items())


def formats() -> str:
    rows = ((f"`{each.suffix}`", f"`{each.name}`", each.title) for each in FORMATS.values())
    beside = ", ".join(f"`{name}`" for name in TABLES)
    csv = f"Beside `NAME.csv`, the gaps, there is a file `NAME.TABLE.csv` for each of these tables: {beside}."
    return table(("suffix", "`--format`", "what it is"), rows) + f"\n\n{csv}"


def commands() -> str:
    return "\n\n".join(map(one_command, COMMANDS))


def one_command(name: str) -> str:
    """What `--help` says, its groups of options as tables."""
    command = COMMANDS[name]
    arguments = [each.metavar for each in command.params if each.param_type_name == "argument"]
    last = not command.allow_interspersed_args
    usage = " ".join(["nsysdiag", name, *(["[OPTIONS] --", *arguments] if last else [*arguments, "[OPTIONS]"])])
    parts = [f"## nsysdiag {name}", f"`{usage}`", " ".join(command.help.split())]
    for group, options in grouped(command.params):
        rows = [(f"`{spelling(each)}`", explained(each)) for each in options if not each.hidden]
        parts += [table((group, "what it does"), rows)] if rows else []
    examples = [line.strip() for line in command.epilog.splitlines()[2:]]
    return "\n\n".join([*parts, block("\n".join(examples), "sh")])


def spelling(option: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    return f"{names} {option.metavar}" if option.metavar else names


def explained(option: Any) -> str:
    default = f" Default: {option.default}." if option.default and not option.is_flag else ""
    return f"{option.help}{default}"


CAPTURES: dict[str, Capture] = {
    "all of them": EVERYTHING,
    "no `--sample`": EVERYTHING.but(samples=False),
    "no `--sample`, no `--cpuctxsw`": EVERYTHING.but(samples=False, sched=False),
    "no `osrt`": EVERYTHING.but(osrt=False),
    "no `nvtx`": EVERYTHING.but(nvtx=False),
    "`--trace=cuda,nvtx` alone": CUDA_ONLY,
}


def flags() -> str:
    programs = (Program(workers=1), Program(thinking=2 * MS, sync=True))
    rows = ([name, *(headline(program, capture) for program in programs)] for name, capture in CAPTURES.items())
    return table(("flags", "a data loader is too slow", "the host computes after each step"), rows)


def headline(program: Program | Simulation, capture: Capture) -> str:
    """Its first sentence."""
    report = nsysdiag.analyze(program.write(Path(f"{len(list(Path().iterdir()))}.sqlite"), capture))
    return report.diagnosis.headline.partition(". ")[0].replace("#", "N").rstrip(".")


NO_SCHEDULING = {"sched": False, "samples": False}
WRONG: tuple[tuple[str, Program | str, str, dict[str, bool]], ...] = (
    ("a worker decodes the batches", "decoding_worker", "`--cpuctxsw`, `--sample`", NO_SCHEDULING),
    ("another process takes the CPU of a worker", "preempted_worker", "`--cpuctxsw`, `--sample`", NO_SCHEDULING),
    ("a thread waits for a thread that waits for a file", "two_hops", "`--cpuctxsw`, `--sample`", NO_SCHEDULING),
    ("the host maps and unmaps memory", "os_memory", "`osrt`", {"osrt": False}),
    ("a data loader is too slow", Program(workers=1), "`nvtx`", {"nvtx": False}),
)
"""What a program does, the program or the name of its scenario, and what is left out of its capture."""


def wrong() -> str:
    """What the report says of programs with all evidence and without some."""
    rows = []
    for what, program, missing, changes in WRONG:
        run = SCENARIOS[program].run() if isinstance(program, str) else program
        full = SCENARIOS[program].capture if isinstance(program, str) else EVERYTHING
        rows.append((what, headline(run, full), missing, headline(run, full.but(**changes))))
    assert [row for row in rows if row[1] == row[3]] == []
    return table(("the program", "the report", "captured without", "the report then"), rows)


def gallery() -> str:
    return entries_table(page("gallery.md"))


def gallery_entry(entry: Entry) -> str:
    """The command, and the first screen as it prints it, without the line that names version and trace."""
    arguments = entry.arguments(entry.traces(Path()))
    screen = printed(*arguments, "-o", f"{entry.name}.html", until=entry.end)
    return f"`nsysdiag {' '.join(arguments)}`: {entry.origin}.\n\n" + re.sub(
        r"\nnsysdiag .*\n(and .*\n)?\n", "\n", screen, count=1
    )


def cause() -> str:
    """The cause that the tests add to the program: its rule, and its words."""
    words = (
        "**2. The words**, `read_ahead.toml` in `nsysdiag/data/rules/`: the advice, the picture, and what looks alike:"
    )
    return "\n\n".join((block(SOURCE, "python"), words, block(WORDS, "toml")))


SLOW, LONG = (pytest.mark.slow,), (pytest.mark.thorough,)


class Section(NamedTuple):
    """A section of a page, what makes it, and the marks of its test."""

    path: Path
    make: Callable[[], str]
    marks: Sequence[pytest.MarkDecorator] = ()


SECTIONS = {
    "analyzed": Section(README, analyzed, SLOW),
    "predicted": Section(README, predicted, SLOW),
    "compared": Section(README, compared, SLOW),
    "demo": Section(DOCS / "quick-start.md", demo, SLOW),
    "ranks": Section(DOCS / "ranks.md", ranks, SLOW),
    "flags": Section(DOCS / "capturing.md", flags, SLOW),
    "wrong": Section(DOCS / "limits.md", wrong, SLOW),
    "causes": Section(DOCS / "causes.md", causes),
    "findings": Section(DOCS / "causes.md", findings),
    "commands": Section(DOCS / "cli.md", commands),
    "formats": Section(DOCS / "formats.md", formats),
    "thresholds": Section(DOCS / "thresholds.md", thresholds.section),
    "terms": Section(DOCS / "reading-a-report.md", terms),
    "cause": Section(CONTRIBUTING, cause),
    "format": Section(CONTRIBUTING, lambda: block(FORMAT_SOURCE, "python")),
    "gallery": Section(DOCS / "gallery.md", gallery),
} | {
    f"gallery {entry.name}": Section(DOCS / "gallery.md", partial(gallery_entry, entry), SLOW if at % 4 == 0 else LONG)
    for at, entry in enumerate(ENTRIES)
}
SECTIONS |= {
    f"example {name}": Section(DOCS / "cause-examples.md", partial(cause_examples.section, name), SLOW)
    for name in cause_examples.EXAMPLES
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=each.marks) for name, each in SECTIONS.items()])
def test_generated_section(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, make, _ = SECTIONS[name]
    monkeypatch.chdir(tmp_path)
    made = f"<!-- {name}: made by scripts/update_goldens -->\n\n{make()}\n\n<!-- end -->"
    pattern = re.compile(rf"<!-- {name}: .*?<!-- end -->", flags=re.DOTALL)
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS") == "1":
        path.write_text(pattern.sub(lambda _: made, text(path)), encoding="utf-8")
    assert pattern.findall(text(path)) == [made]


@pytest.mark.sampled
@pytest.mark.parametrize("stage", thresholds.STAGES)
def test_every_threshold_says_what_it_does(stage: str) -> None:
    found = [each for folder in thresholds.STAGES[stage] for each in thresholds.constants(folder)]
    assert found
    assert [(each.path.name, *each.values) for each in found if not each.said] == []
