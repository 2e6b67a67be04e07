"""`--help`: the options in groups, at the width of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.help import GROUP_OF, GROUPS, OTHERS, group_of, grouped
from nsysdiag.cli.options import DemoOutputs
from tests.cli.conftest import command_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

COMMANDS = command_of(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_group(command: str) -> None:
    options = [each for each in COMMANDS[command].params if each.param_type_name == "option"]
    assert [option.opts for option in options if group_of(option) == OTHERS] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_options_have_one_order_in_all_commands(command: str) -> None:
    shown = [max(option.opts, key=len) for _group, options in grouped(COMMANDS[command].params) for option in options]
    assert shown == [option for option in GROUP_OF if option in shown]


def test_a_group_of_options_keeps_the_defaults_of_what_is_no_option() -> None:
    outputs = DemoOutputs(output=["a.html"], quiet=True)
    assert (outputs.output, outputs.quiet, outputs.details, outputs.redact) == (["a.html"], True, False, False)
    assert {each.name for each in DemoOutputs.parameters()} & {"details", "redact"} == set()
    assert outputs.but(force=True).output == ["a.html"]


def test_groups_in_their_order(cli: Callable[..., Result]) -> None:
    lines = cli("analyze", "--help").stdout.decode().splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    groups = [title for title in GROUPS if title in titles]
    assert titles == ["Arguments", *groups]
    assert len(groups) == 6
    outputs = lines[lines.index("Outputs:") :][: lines[lines.index("Outputs:") :].index("")]
    assert [word for word in ("--output", "--open", "--gaps") if not any(word in line for line in outputs)] == []
    assert not any("--nvtx" in line for line in outputs)


def test_an_option_of_no_group_is_shown(cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(GROUP_OF, "--gaps")
    text = cli("analyze", "--help").stdout.decode()
    assert text.index(f"{OTHERS}:\n  --gaps") > text.index("Help:")


@pytest.mark.parametrize("columns", [60, 100, 160])
@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_the_width_of_the_terminal(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], columns: int
) -> None:
    """But for the examples, which are lines to copy."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text, _examples, _ = cli(*command, "--help").stdout.decode().partition("  Example")
    longest = max(map(len, text.splitlines()))
    assert longest <= columns
    assert longest > 80 or columns < 160 or command == ("rules",)
