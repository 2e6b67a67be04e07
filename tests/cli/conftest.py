"""The command line run in this process, on a fake analysis that costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import pytest
from typer.main import get_command

from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from nsysdiag.config.settings import Settings
from tests.output import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.report import Report


command_of = cache(get_command)
"""The commands of an application, put together once for all command lines."""


@dataclass(frozen=True)
class Result:
    """What a command line left behind: exit code, stdout as bytes and stderr as text."""

    code: int
    stdout: bytes
    stderr: str


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run one command line: `cli("analyze", trace)`."""

    monkeypatch.setattr("nsysdiag.cli.console.get_command", command_of)

    def execute(*arguments: object) -> Result:
        code = run(app, [str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Result(code, out, err.decode())

    return execute


@dataclass
class FakeAnalysis:
    """Stands for the pipeline: remembers how it was called and gives a report, or raises."""

    report: Report
    calls: list[tuple[Path, Settings]] = field(default_factory=list)
    error: BaseException | None = None

    def __call__(self, path: Path, settings: Settings, progress: object) -> Report:
        self.calls.append((path, settings))
        if self.error is not None:
            raise self.error
        return self.report

    @property
    def settings(self) -> Settings:
        """The settings of the only call."""
        ((_path, settings),) = self.calls
        return settings


@pytest.fixture
def analysis(monkeypatch: pytest.MonkeyPatch) -> FakeAnalysis:
    """The pipeline replaced by a fake."""
    fake = FakeAnalysis(samples.one_device())
    monkeypatch.setattr("nsysdiag.pipeline.analyze", fake)
    return fake


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trace(folder: Path) -> Path:
    """A file that the fake analysis takes for a trace, in the current folder."""
    path = folder / "train.sqlite"
    path.write_bytes(b"SQLite format 3\0")
    return path.relative_to(folder)
