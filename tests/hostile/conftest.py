"""The command line in this process, and what it sent to the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from tests.builder import TraceBuilder
from tests.hostile.every_table import write_every_table
from tests.trace.parquet_folders import to_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Told:
    """Exit code, and both streams as they would reach a terminal."""

    code: int
    stdout: str
    stderr: str

    @property
    def everything(self) -> str:
        """Both streams."""
        return self.stdout + self.stderr


@pytest.fixture
def command(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Told]:
    """Run one command line in an empty folder: `command("analyze", trace)`."""
    folder: Path = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(folder)

    def execute(*arguments: object) -> Told:
        code = run(app, [str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Told(code, out.decode(), err.decode())

    return execute


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A trace of two launched kernels."""
    builder = TraceBuilder()
    for start in (1_000, 5_000):
        builder.kernel(start, start + 2_000, name="gemm", launch=(start - 500, start - 400))
    return to_folder(builder.write(tmp_path / "t.sqlite"), tmp_path / "t_pqtdir", row_group=1, compression="snappy")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with rows in every table, some to a row group."""
    path = write_every_table(tmp_path_factory.mktemp("whole") / "every.sqlite")
    return to_folder(path, path.with_suffix(""), row_group=10, compression="snappy")
