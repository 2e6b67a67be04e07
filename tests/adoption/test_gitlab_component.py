"""The component for GitLab: its form, and its script under the shells that a runner may have."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.adoption.linting import fits
from tests.adoption.runners import (
    ROOT,
    Machine,
    component,
    filled_component,
    machine,
    put_trace,
    run_job,
    with_real_pip,
)
from tests.adoption.test_action import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
SHELLS = [
    pytest.param(
        [*shell.split()], id=shell, marks=() if shutil.which(shell.split()[0]) else pytest.mark.skip("no such")
    )
    for shell in ("bash -eo pipefail", "sh -e", "busybox sh -e")
]
GITLAB = ("vendor.gitlab-ci", "--data-transform", "gitlab-ci")


@pytest.fixture
def on(tmp_path: Path) -> Machine:
    return machine(tmp_path)


def job(**inputs: str) -> dict[str, Any]:
    return filled_component({"package": "nsysdiag", "traces": "traces", **inputs})["nsysdiag"]


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("shell", SHELLS)
class TestScript:
    def test_all_inputs(self, on: Machine, shell: list[str]) -> None:
        put_trace(on.folder / "my traces" / "train.sqlite")
        (on.folder / "settings.toml").write_text("gaps = 7")
        wanted = {
            "traces": "my traces\n\n",
            "output": "my reports",
            "config": "settings.toml",
            "fail_on": "idle_share > 99%\r\nfindings.all > 9000",
            "warn_on": "idle_ns > 1ms",
            "history": "trend.jsonl",
            "arguments": "--jobs=1\n--run=my run",
        }
        done = run_job(on, job(**wanted), shell)
        assert done.code == 0, done.log
        saved = json.loads((on.folder / "my reports" / "summary.json").read_bytes())
        assert [each["source"] for each in saved["entries"][0]["budgets"]] == ["--fail-on", "--fail-on", "--warn-on"]
        assert saved["settings"]["gaps"] == 7
        assert '"run":"my run"' in (on.folder / "trend.jsonl").read_text()
        assert on.asked_of_pip[-2:] == ["--", "nsysdiag"]

    @pytest.mark.thorough
    def test_the_exit_code_is_that_of_nsysdiag(self, on: Machine, shell: list[str]) -> None:
        put_trace(on.folder / "x.sqlite")
        (on.folder / "bad.sqlite").write_bytes(b"text")
        assert run_job(on, job(traces="x.sqlite", fail_on="idle_share > 1%"), shell).code == 1
        assert run_job(on, job(traces="nothing"), shell).code == 2
        assert run_job(on, job(traces="x.sqlite\nbad.sqlite"), shell).code == 4

    @pytest.mark.thorough
    def test_no_input_is_run(self, on: Machine, shell: list[str]) -> None:
        names = [f"{name}.sqlite" for name in HOSTILE if name != "*"]
        for name in names:
            put_trace(on.folder / name)
        done = run_job(on, job(traces="\n".join(names)), shell)
        assert done.code == 0, done.log
        for attack in HOSTILE:
            run_job(on, job(**dict.fromkeys(component()[0].keys() - {"job"}, attack)), shell)
        assert list(on.folder.parent.rglob("pwned")) == []


@pytest.mark.thorough
def test_a_path_is_installed_by_pip(on: Machine) -> None:
    put_trace(on.folder / "x.sqlite")
    on = with_real_pip(on)
    on.environment |= {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    done = run_job(on, job(traces="x.sqlite", package=str(ROOT)), ["bash", "-eo", "pipefail"])
    assert done.code == 0, done.log


def test_head_and_job_fit_the_schema(tmp_path: Path) -> None:
    declared, _ = component()
    path = tmp_path / "component.yml"

    def fitting(document: object) -> bool:
        path.write_text(yaml.safe_dump(document))
        return fits(path, *GITLAB)

    assert fitting({"spec": {"inputs": declared}})
    assert not fitting({"spec": {"inputs": {**declared, "more": {"type": "text"}}}})
    assert fitting({"nsysdiag": job()})
    assert not fitting({"nsysdiag": {**job(), "artefacts": {}}})


def test_every_input_is_used_and_declared() -> None:
    declared, jobs = component()
    text = yaml.safe_dump(jobs)
    assert [name for name in declared if f"$[[ inputs.{name} ]]" not in text] == []
    assert "$[[" not in yaml.safe_dump(job())
    assert [name for name, each in declared.items() if "default" not in each] == ["package", "traces"]
    assert not any("$[[" in line for each in jobs.values() for line in each["script"])


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_script_is_a_script(shell: str, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("\n".join(job()["script"]))
    subprocess.run([shell, "-n", tmp_path / "job.sh"], check=True)


@pytest.mark.thorough
def test_artifacts_are_what_a_batch_writes(on: Machine) -> None:
    put_trace(on.folder / "traces" / "x.sqlite")
    made = job(output="out")
    assert run_job(on, made, ["sh", "-e"]).code == 0
    reports = made["artifacts"]["reports"]
    assert reports.keys() == {"junit"}
    assert all(
        (on.folder / path).is_file() for path in [*reports.values(), *made["artifacts"]["paths"]] if path != "out"
    )
