"""The container file: its form, and its commands in a folder that stands for the image, as no engine runs here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from tests.adoption.runners import ROOT, machine, put_trace, with_real_pip
from tests.conftest import NODE_MODULES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.checkout]
FILE = ROOT / ".ci" / "Containerfile"
LINT = """
const {{ validate }} = await import({module});
console.log(JSON.stringify(validate({content}).map((each) => each.message)));
"""


class Instruction(Struct, frozen=True):
    """`COPY a b/`: its name and the rest, on one line."""

    name: str
    rest: str


def instructions() -> list[Instruction]:
    text = re.sub(r"^#.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [Instruction(name, " ".join(rest.split())) for name, rest in lines]


def of(name: str) -> list[str]:
    return [each.rest for each in instructions() if each.name == name]


def build(image: Path, run: dict[str, str]) -> None:
    """Do what the first stage does, with `image` for the root of the file system."""
    source = image / "source"
    source.mkdir(parents=True)
    for each in instructions():
        if each.name == "COPY" and not each.rest.startswith("--from"):
            *paths, target = each.rest.split()
            place = source / target
            for path in paths:
                if (ROOT / path).is_dir():
                    shutil.copytree(ROOT / path, place, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / path, place)
        elif each.name == "RUN":
            script = each.rest.replace("/opt/", f"{image}/opt/")
            done = subprocess.run(["sh", "-c", script], cwd=source, env=run, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr.decode()


@pytest.mark.thorough
def test_its_commands_make_an_environment_that_reads_mounted_traces(tmp_path: Path) -> None:
    on = with_real_pip(machine(tmp_path))
    image = tmp_path / "image"
    build(image, on.environment)
    put_trace(on.folder / "train.sqlite")
    (entry,) = of("ENTRYPOINT")
    (program,) = json.loads(entry)
    path = f"{image}/opt/nsysdiag/bin:/usr/bin:/bin"  # as ENV says
    done = subprocess.run(
        [shutil.which(program, path=path) or "", "batch", ".", "-o", "reports"],
        cwd=on.folder,
        env={**on.environment, "PATH": path},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert (on.folder / "reports" / "train.html").is_file()


def test_nothing_runs_as_root_and_nothing_is_fetched_that_the_lock_does_not_name() -> None:
    (user,) = of("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    after = [each.name for each in instructions()]
    assert "RUN" not in after[after.index("USER") :]
    installs = [each for each in of("RUN") if "install" in each]
    assert len(installs) == 2
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)
    assert of("ENV") == ["PATH=/opt/nsysdiag/bin:$PATH"]
    assert of("WORKDIR")[-1] == "/traces"


def test_nothing_but_sources_is_copied() -> None:
    copied = {path for each in of("COPY") if not each.startswith("--") for path in each.split()[:-1]}
    assert copied == {
        *("scripts/requirements.txt", "scripts/_long_description.py", "pyproject.toml", "README.md", "LICENSE"),
        *("docs/nsysdiag.1", "templates", "nsysdiag"),
    }


@pytest.mark.npm
def test_a_linter_finds_nothing() -> None:
    if not (NODE_MODULES / "dockerfile-utils").is_dir():
        pytest.skip("no dockerfile-utils in .npm; scripts/test fetches it")

    def complaints(content: str) -> list[str]:
        module = (NODE_MODULES / "dockerfile-utils" / "lib" / "main.js").as_uri()
        code = LINT.format(module=json.dumps(module), content=json.dumps(content))
        done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, check=True)
        found: list[str] = json.loads(done.stdout)
        return found

    content = FILE.read_text(encoding="utf-8")
    assert complaints(content) == []
    assert complaints(content.replace("USER 65534", "USR 65534"))
    assert complaints(content.replace("COPY --from=build", "COPY --form=build"))
