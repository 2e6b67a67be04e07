"""docs/baselines.md says what is so: its commands and settings are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from nsysdiag.baselines import FILE, read_accepted
from nsysdiag.ci.budgets import parse_budgets
from nsysdiag.cli.app import app
from nsysdiag.config.file import read_file

TEXT = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
LINES = [line for block in BLOCKS for line in block.splitlines()]
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
"""Commands of its own: a command that was called without its application remembers other options."""


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("nsysdiag ")])
def test_commands_are_understood(line: str) -> None:
    name, *arguments = shlex.split(line, comments=True)[1:]
    COMMANDS[name].make_context(name, arguments)


def test_settings_and_acceptances_are_understood(tmp_path: Path) -> None:
    settings, accepted = re.findall(r"^```ini\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    (tmp_path / "nsysdiag.toml").write_text(settings)
    assert read_file(tmp_path / "nsysdiag.toml")[0].baseline.runs == 20
    (tmp_path / FILE).write_text(accepted)
    assert [each.expression.text for each in read_accepted(tmp_path)] == ["length:+9%"]


def test_bounds_are_budgets() -> None:
    (line,) = [line for line in TEXT.splitlines() if line.startswith("`length:+9%`, ")]
    assert len(parse_budgets(re.findall(r"`([^`]+)`", line), "fail", "docs")) == 3
