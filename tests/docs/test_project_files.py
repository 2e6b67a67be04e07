"""Files for people around the project: how to cite it, and the forms for issues."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

import nsysdiag
from nsysdiag.cli.app import app
from tests.docs.pages import ROOT, text
from tests.docs.test_examples import fits

PROJECT: dict[str, Any] = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
CITATION = ROOT / "CITATION.cff"
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]


def test_the_citation_is_of_this_version() -> None:
    citation: dict[str, Any] = yaml.safe_load(text(CITATION))
    assert citation["version"] == nsysdiag.__version__
    assert citation["license"] == "MIT"


@pytest.mark.slow
def test_the_citation_fits_its_schema(tmp_path: Path) -> None:
    options = ("vendor.citation-file-format", "--default-filetype", "yaml", "--force-filetype", "yaml")
    assert fits(CITATION, *options)
    (tmp_path / "CITATION.cff").write_text(text(CITATION).replace("authors:", "writers:"), encoding="utf-8")
    assert not fits(tmp_path / "CITATION.cff", *options)


@pytest.mark.checkout
def test_every_form_asks_for_a_trace_without_names() -> None:
    assert len(FORMS) == 3
    assert [path.name for path in FORMS if "nsysdiag bundle TRACE --redact" not in text(path)] == []


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.slow
@pytest.mark.checkout
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_fit_their_schema(path: Path) -> None:
    assert fits(path, "vendor.github-workflows")


@pytest.mark.checkout
def test_a_release_has_no_secret_and_only_the_rights_that_a_job_needs() -> None:
    publish = text(ROOT / ".github" / "workflows" / "publish.yml")
    workflow: dict[str, Any] = yaml.safe_load(publish)
    assert "secrets." not in publish
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "release"
    used = [step.get("uses", "").partition("@")[0] for job in jobs.values() for step in job["steps"]]
    assert {"actions/attest-build-provenance", "actions/attest-sbom", "pypa/gh-action-pypi-publish"} <= set(used)


@pytest.mark.checkout
def test_python_versions_are_those_that_are_tested() -> None:
    jobs = yaml.safe_load(text(ROOT / ".github" / "workflows" / "tests.yml"))["jobs"]
    tested = {"3.11", *jobs["python"]["strategy"]["matrix"]["python"]}
    prefix = "Programming Language :: Python :: 3."
    said = {f"3.{each.removeprefix(prefix)}" for each in PROJECT["classifiers"] if each.startswith(prefix)}
    assert said <= tested
    assert f">={min(said)}" == PROJECT["requires-python"]


@pytest.mark.checkout
def test_the_recipe_has_the_dependencies_of_the_package() -> None:
    recipe: dict[str, Any] = yaml.safe_load(text(ROOT / ".ci" / "recipe" / "recipe.yaml"))
    assert recipe["requirements"]["run"] == [f"python {PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert recipe["context"]["version"] == PROJECT["version"]


@pytest.mark.checkout
def test_the_builder_of_the_image_gets_what_is_copied() -> None:
    lines = text(ROOT / ".ci" / "Containerfile").replace("\\\n", " ").splitlines()
    copied = {
        each for line in lines if line.startswith("COPY ") and "--from" not in line for each in line.split()[1:-1]
    }
    kept = {line[1:] for line in text(ROOT / ".dockerignore").splitlines() if line.startswith("!")}
    assert kept == copied


@pytest.mark.slow
@pytest.mark.checkout
def test_hooks_for_pre_commit_fit_their_schema() -> None:
    (hook,) = yaml.safe_load(text(ROOT / ".pre-commit-hooks.yaml"))
    assert {"id", "name", "entry", "language"} <= hook.keys()
    command = get_command(app).commands["batch"]  # type: ignore[attr-defined]
    options = {name for each in command.params for name in each.opts}
    assert {word for word in hook["entry"].split() if word.startswith("--")} <= options


@pytest.mark.thorough
@pytest.mark.checkout
def test_forms_fit_their_schema(tmp_path: Path) -> None:
    assert [path.name for path in FORMS if not fits(path, "vendor.github-issue-forms")] == []
    (tmp_path / "form.yml").write_text(text(FORMS[0]).replace("type: textarea", "type: text"), encoding="utf-8")
    assert not fits(tmp_path / "form.yml", "vendor.github-issue-forms")
