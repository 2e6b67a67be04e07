"""Runs the steps of a GitHub action and the script of a GitLab job in the way that their runners do.

What is substituted is substituted as text, as there; a step of another action is only remembered.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from nsysdiag.functions import bundled_trace

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
COMPONENT = ROOT / "templates" / "nsysdiag.yml"

# Stands for `python3 -m venv FOLDER` and for the pip in it, which writes down what it is asked for.
STAND_IN = """#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\\nfor word; do printf "%%s\\\\n" "$word"; done >>"{told}"\\n' >"$3/bin/python"
printf '#!/bin/sh\\nPYTHONPATH="{root}" exec "{python}" -P -m nsysdiag "$@"\\n' >"$3/bin/nsysdiag"
chmod +x "$3/bin/python" "$3/bin/nsysdiag"
"""


class Run(Struct):
    """What a runner leaves behind: the exit code, the log, the outputs of the whole, the summary of the job, and the
    steps that are actions of others with their values."""

    code: int = 0
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    used: dict[str, dict[str, str]] = field(default_factory=dict)


class Machine(Struct):
    """A folder to work in, and what is on the PATH."""

    folder: Path
    told: Path
    environment: dict[str, str]

    @property
    def asked_of_pip(self) -> list[str]:
        """The words of all its command lines."""
        return self.told.read_text().splitlines() if self.told.exists() else []


def machine(folder: Path) -> Machine:
    """A machine without network, whose `python3` makes environments that hold this checkout."""
    work, temporary, programs = folder / "work", folder / "runner's temp", folder / "bin"
    for each in (work, temporary, programs):
        each.mkdir()
    told = folder / "told"
    script = STAND_IN.format(told=told, root=ROOT, python=sys.executable)
    (programs / "python3").write_text(script)
    (programs / "python3").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    return Machine(work, told, {**kept, "PATH": path, "RUNNER_TEMP": str(temporary), "TMPDIR": str(temporary)})


def with_real_pip(on: Machine) -> Machine:
    """The machine with a real `python3` and pip, for which the packages of this environment are installed already, in
    the versions of the lock, and nsysdiag is not."""
    links = on.folder.parent / "packages"
    links.mkdir()
    for each in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if each.suffix != ".pth" and "nsysdiag" not in each.name:
            (links / each.name).symlink_to(each)
    for name in ("python3", "python"):
        program = on.folder.parent / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        program.chmod(0o755)
    on.environment |= {"PYTHONPATH": str(links), "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"}
    return on


def put_trace(path: Path) -> None:
    """The trace of the demo: two GPUs, each idle for more than a tenth of the time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress(bundled_trace()))


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return loaded


def run_action(on: Machine, inputs: dict[str, str], github: dict[str, str] | None = None) -> Run:
    """All steps of the action, until one fails. `github` are further values of its context."""
    made, done = action(), Run()
    given = {name: str(each.get("default", "")) for name, each in made["inputs"].items()} | inputs
    known = {f"inputs.{name}": value for name, value in given.items()} | {"github.action_path": str(ROOT)}
    known |= {f"github.{name}": value for name, value in (github or {}).items()}
    summary = on.folder.parent / "summary.md"
    summary.write_bytes(b"")
    for number, step in enumerate(made["runs"]["steps"]):
        if "if" in step and not _holds(step["if"], known):
            continue
        if "uses" in step:
            done.used[step["uses"]] = {name: _filled(value, known) for name, value in step["with"].items()}
            continue
        outputs = on.folder.parent / f"output{number}"
        outputs.write_bytes(b"")
        files = {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true"}
        values = {name: _filled(value, known) for name, value in step.get("env", {}).items()}
        script = on.folder.parent / f"step{number}.sh"
        script.write_text(_filled(step["run"], known), encoding="utf-8")
        code, log = _run(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], on, files | values)
        done.log += log
        for line in outputs.read_text().splitlines():
            name, _, value = line.partition("=")
            known[f"steps.{step['id']}.outputs.{name}"] = value
        if code:
            done.code = code
            break
    done.outputs = {name: _filled(each["value"], known) for name, each in made["outputs"].items()}
    done.summary = summary.read_text()
    return done


def component() -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs of the component, and its jobs with the inputs not filled in."""
    head, jobs = yaml.safe_load_all(COMPONENT.read_text(encoding="utf-8"))
    return head["spec"]["inputs"], jobs


def filled_component(inputs: dict[str, str]) -> dict[str, Any]:
    """The jobs with these inputs. Raises KeyError for one that is needed and not given."""
    declared, jobs = component()
    values = {name: inputs[name] if name in inputs else each["default"] for name, each in declared.items()}

    def fill(node: Any) -> Any:
        if isinstance(node, dict):
            return {fill(name): fill(value) for name, value in node.items()}
        if isinstance(node, list):
            return [fill(each) for each in node]
        if isinstance(node, str):
            return re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: values[found[1]], node)
        return node

    made: dict[str, Any] = fill(jobs)
    return made


def run_job(on: Machine, job: dict[str, Any], shell: list[str]) -> Run:
    """The script of a GitLab job."""
    variables = {name: each["value"] for name, each in job["variables"].items()}
    assert not any(each["expand"] for each in job["variables"].values())
    script = on.folder.parent / "job.sh"
    script.write_text("\n".join(job["script"]), encoding="utf-8")
    code, log = _run([*shell, str(script)], on, variables)
    return Run(code, log)


def _run(command: list[str], on: Machine, more: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=on.folder,
        env=on.environment | more,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout.decode()


_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")


def _filled(text: object, known: dict[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: known.get(found[1], ""), str(text))


def _holds(condition: str, known: dict[str, str]) -> bool:
    """`a == 'b' && c != 'd'`, which is all that the action has."""
    (inside,) = _EXPRESSION.findall(condition)
    comparisons = [re.fullmatch(r"(\S+) (==|!=) '(.*)'", each) for each in inside.split(" && ")]
    assert all(comparisons), condition
    return all((known.get(each[1], "") == each[3]) == (each[2] == "==") for each in comparisons if each)
