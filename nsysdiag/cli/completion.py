"""Completion in shells: what a word may go on with, without importing what an analysis needs."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PROGRAM = "nsysdiag"
VARIABLE = "_NSYSDIAG_COMPLETE"
"""Set by the scripts, as Typer has it, when they ask the program for words."""
EPILOG = """\b
Examples:
  nsysdiag completion bash
  nsysdiag completion zsh"""


class Shell(StrEnum):
    """The shells that have completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print the script that completes commands, options, causes, formats and suffixes in a shell.

    It belongs into ~/.local/share/bash-completion/completions/nsysdiag for bash, into _nsysdiag in a folder of $fpath
    for zsh, into ~/.config/fish/completions/nsysdiag.fish for fish.
    """
    raise typer.Exit(_answer(context.find_root().command, f"source_{shell}"))


def complete(app: typer.Typer) -> NoReturn:
    """Answer a script of a shell, and exit."""
    from typer.main import get_command

    sys.exit(_answer(get_command(app), os.environ[VARIABLE]))


def _answer(command: Any, asked: str) -> int:
    from typer.completion import get_completion_inspect_parameters, shell_complete

    get_completion_inspect_parameters()  # which has Typer know the shells
    return shell_complete(command, {}, PROGRAM, VARIABLE, asked)


@cache
def known_words() -> dict[str, list[str]]:
    """Causes, rules, formats and suffixes, from a file that a test keeps as they are: the modules import numpy."""
    import json

    words: dict[str, list[str]] = json.loads(files("nsysdiag").joinpath("data", "completion.json").read_text("utf-8"))
    return words


def one_of(kind: str) -> Callable[[str], list[str]]:
    """Completes a word to those of one kind."""

    def matching(incomplete: str) -> list[str]:
        return _beginning(known_words()[kind], incomplete)

    return matching


def format_of(names: str) -> Callable[[str], list[str]]:
    """Completes a word to formats, which are given as a help text names them: `html, json or md`."""
    known = names.replace(" or ", ", ").split(", ")
    return lambda incomplete: _beginning(known, incomplete)


def output_path(incomplete: str) -> list[str]:
    """Completes a name to files with the suffixes of formats: `report.h` to `report.html`."""
    suffixes = known_words()["suffixes"]
    stem = incomplete.rpartition(".")[0]
    begun = _beginning([stem + suffix for suffix in suffixes], incomplete) if stem else []
    has_name = incomplete and not incomplete.endswith("/")
    return begun or [incomplete + suffix for suffix in suffixes if has_name]


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
