"""The manual page: that of today, with every option that the help has, and well-formed for man."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.help import manual_page
from tests.cli.conftest import command_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

PAGE = Path(__file__).parents[2] / "docs" / "nsysdiag.1"
PROGRAM = command_of(app)


def test_the_page_is_that_of_today() -> None:
    """It is in the repository because packages are built without running the program."""
    page = manual_page(PROGRAM)
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS") == "1":
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def test_the_command_prints_it(cli: Callable[..., Result]) -> None:
    assert cli("manual").stdout == manual_page(PROGRAM).encode()


def plain(page: str) -> str:
    """The words of the page, without the requests and escapes of roff."""
    text = re.sub(r"\\f[BIR]|\\&", "", page).replace(r"\-", "-").replace(r"\e", "\\")
    return " ".join("\n".join(line for line in text.splitlines() if not re.match(r"\.(PP|TP|nf|fi)$", line)).split())


@pytest.mark.parametrize("command", PROGRAM.commands)  # type: ignore[attr-defined]
def test_it_says_what_the_help_says(cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    page = plain(manual_page(PROGRAM))
    section = page[page.index(f".SS nsysdiag {command} ") :].split(" .SS ")[0]
    help_text = cli(command, "--help").stdout.decode().split("\n\n", 1)[1]
    shown = re.sub(r"Arguments:\n.*?\n\n", "", help_text, flags=re.DOTALL)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert [line for line in lines if line and not line.endswith(":") and line not in section] == []


def test_man_finds_no_mistake() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("no groff here")
    done = subprocess.run([groff, "-man", "-ww", "-Tutf8", str(PAGE)], capture_output=True, check=True)
    assert done.stderr == b""
    assert b"--capture-range" in done.stdout


def test_every_line_is_a_request_or_text() -> None:
    known = {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".br", ".nf", ".fi"}
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= known
    assert "" not in lines
