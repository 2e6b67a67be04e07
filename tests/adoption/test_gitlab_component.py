"""The component for GitLab: its form, and its script under the shells that a runner may have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import yaml

from nsysdiag import analyze
from nsysdiag.record import to_json
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


@pytest.mark.thorough
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


class Notes(BaseHTTPRequestHandler):
    """The notes of a merge request, on two pages."""

    pages: ClassVar[list[list[dict[str, object]]]] = []
    asked: ClassVar[list[tuple[str, str, str]]] = []

    def do_GET(self) -> None:
        number = int(self.path.rpartition("page=")[2])
        last = number >= len(self.pages)
        self.answer(self.pages[number - 1] if self.pages else [], "" if last else str(number + 1))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.asked.append((self.command, self.path, body))
        assert self.headers["PRIVATE-TOKEN"] == "secret"
        self.answer({}, "")

    def do_PUT(self) -> None:
        self.do_POST()

    def answer(self, found: object, after: str) -> None:
        self.send_response(200)
        self.send_header("X-Next-Page", after)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_words: object) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    ("there", "method", "path"),
    [
        ([], "POST", ""),
        ([[{"id": 1, "body": "x"}], [{"id": 2, "body": "a\nother"}]], "POST", ""),
        (
            [[{"id": 1, "body": "x"}], [{"id": 2, "body": "a\nmark\nold"}]],
            "PUT",
            "/2",
        ),
    ],
)
def test_the_comment_is_posted_once_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: list[list[dict[str, object]]], method: str, path: str
) -> None:
    """What the job gives to Python, with a server in place of GitLab."""
    script = "\n".join(job(traces="x")["script"])
    (program,) = re.findall(r"<<'EOF'\n(.*?)\nEOF\n", script, flags=re.DOTALL)
    (tmp_path / "comment.md").write_text("a\nmark\nnew\n")
    monkeypatch.setattr(Notes, "pages", there)
    monkeypatch.setattr(Notes, "asked", [])
    with HTTPServer(("127.0.0.1", 0), Notes) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        api = f"http://127.0.0.1:{server.server_port}"
        values = {"CI_API_V4_URL": api, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "7", "NSYSDIAG_TOKEN": "secret"}
        done = subprocess.run(
            [sys.executable, "-", str(tmp_path / "comment.md")],
            input=program.encode(),
            env=values,
            capture_output=True,
            check=False,
        )
        server.shutdown()
        thread.join()
    assert done.returncode == 0, done.stderr.decode()
    assert Notes.asked == [(method, f"/projects/3/merge_requests/7/notes{path}", "a\nmark\nnew\n")]


@pytest.mark.thorough
@pytest.mark.parametrize("shell", SHELLS)
def test_it_compares_with_a_baseline(on: Machine, shell: list[str]) -> None:
    put_trace(on.folder / "x.sqlite")
    wanted = {"traces": "x.sqlite", "baseline": "main", "after": "x.sqlite"}
    new = run_job(on, job(**wanted), shell)
    assert new.code == 0, new.log
    assert "baseline main has no run yet: nothing is compared" in new.log
    runs = on.folder / ".nsysdiag" / "baselines" / "main"
    runs.mkdir(parents=True)
    (runs / "run.json").write_bytes(to_json(analyze(on.folder / "x.sqlite")))
    kept = run_job(on, job(**wanted, comment="train"), shell)
    assert kept.code == 0, kept.log
    comment = on.folder / "nsysdiag-reports" / "compare.md"
    assert comment.read_text().splitlines()[1] == "<!-- nsysdiag comment: train -->"
    broken = run_job(on, job(**wanted, compare_fail_on="idle_share > 1%"), shell)
    assert broken.code == 1
