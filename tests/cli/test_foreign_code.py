"""No command imports anything from the current folder, nor from a folder that it reads: artifacts are foreign files."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.cli.every_command import COMMANDS, OTHER, console_script, ran, write_inputs

OFTEN = ("--version", "analyze", "batch")
STARTED_BY_PYTHON = {"sitecustomize", "usercustomize", "pip", "nsysdiag", "encodings"}


def plant(folder: Path, marker: Path) -> None:
    """A module of every name that anything installed could import, which leaves its name in `marker`. Every second one
    is a package."""
    names = {*sys.stdlib_module_names, *packages_distributions(), *STARTED_BY_PYTHON} - {"__main__"}
    assert {"numpy", "multiprocessing", "typer", "rich", "jinja2", "adbc_driver_sqlite", "sqlalchemy"} <= names
    for at, name in enumerate(sorted(name for name in names if name.isidentifier())):
        path = folder / name / "__init__.py" if at % 2 else folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(marker)!r}, 'a').write({name + ' '!r})\n")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


@pytest.fixture
def folder(inputs: Path, tmp_path: Path) -> Path:
    """A folder with traces and planted modules."""
    shutil.copytree(inputs, tmp_path / "artifacts")
    plant(tmp_path / "artifacts", tmp_path / "imported")
    return tmp_path / "artifacts"


def imported(folder: Path) -> str:
    marker = folder.parent / "imported"
    return marker.read_text() if marker.exists() else ""


@pytest.mark.thorough
def test_the_planted_modules_tell(folder: Path) -> None:
    """With `-m` and without `-P`, as with `-c`, Python looks into the current folder first."""
    ran(Path("-m"), folder, "json")
    assert imported(folder)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.thorough) for name in COMMANDS]
)
def test_no_command_imports_from_the_current_folder(command: str, folder: Path) -> None:
    done = ran(console_script(folder.parent / "bin"), folder, *COMMANDS[command])
    assert (done.returncode, imported(folder)) == (0, ""), done.stderr


@pytest.mark.slow
def test_as_a_module_it_imports_none_of_its_packages_from_there(inputs: Path, tmp_path: Path) -> None:
    """Without `-P` Python itself does, before the program begins; from then on no more."""
    for name in ("typer", "numpy", "sqlalchemy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a')\n")
    done = ran(Path("-m"), tmp_path, "nsysdiag", "info", str(inputs / OTHER))
    assert (done.returncode, (tmp_path / "imported").exists()) == (0, False), done.stderr


@pytest.mark.thorough
def test_nor_from_the_folder_that_is_read(folder: Path, tmp_path: Path) -> None:
    done = ran(console_script(tmp_path / "bin"), tmp_path, "batch", str(folder), "-o", "out", "--jobs", "2")
    assert (done.returncode, imported(folder)) == (0, ""), done.stderr


@pytest.mark.thorough
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="Dask is not installed")
@pytest.mark.filterwarnings("default")  # what Dask warns of is its own
def test_nor_on_a_cluster(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose workers were started in that folder, in the way that docs/batches.md says."""
    from distributed import LocalCluster

    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as cluster:
        command = ["batch", OTHER, "-o", "out", "--scheduler", cluster.scheduler_address]
        done = ran(console_script(tmp_path / "bin"), folder, *command, PYTHONSAFEPATH="")
    assert (done.returncode, imported(folder)) == (0, ""), done.stderr
