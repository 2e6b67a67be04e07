"""Messages on stderr, those of Python among them: none holds a workflow command, and none goes to stdout."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hostile.runners import commands

NAMES = "a\n::error file=x::y ##vso[task.setvariable variable=a]b ##[error]c\r::group::d"
CODE = """
import sys, threading, warnings
from nsysdiag.messages import note, note_messages_of_python
note_messages_of_python()
class Broken:
    def __del__(self): raise ValueError({names!r})
    def __repr__(self): return {names!r}
def fail(): raise RuntimeError({names!r}) from ValueError({names!r})
{case}
"""
CASES = {
    "note": "note({names!r})",
    "warning": "warnings.warn({names!r}, stacklevel=1)",
    "uncaught": "fail()",
    "thread": "thread = threading.Thread(target=fail); thread.start(); thread.join()",
    "ignored": "Broken()",
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_command_in_any_message(case: str) -> None:
    code = CODE.format(names=NAMES, case=case.format(names=NAMES))
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert "file=x::y" in done.stderr
    assert not commands(done.stderr)


def test_a_closed_stderr_leaves_stdout_alone() -> None:
    code = "import sys; sys.stderr = None; from nsysdiag.messages import note; note('a')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
