"""Messages on stderr: none holds a workflow command, and none goes to stdout."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nsysdiag.messages import note, note_traceback
from tests.hostile.runners import commands

NAMES = "a\n::error file=x::y ##vso[task.setvariable variable=a]b ##[error]c\r::group::d"


def test_no_command_in_any_message(capsys: pytest.CaptureFixture[str]) -> None:
    note(NAMES)
    note_traceback(RuntimeError(NAMES))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("file=x::y") == 2
    assert not commands(shown.err)


def test_a_closed_stderr_leaves_stdout_alone() -> None:
    code = "import sys; sys.stderr = None; from nsysdiag.messages import note; note('a')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
