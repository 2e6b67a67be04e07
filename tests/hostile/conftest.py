"""The command line in this process, and what it sent to the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.errors import run

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
