"""The page on Python says what is so: its examples run one after the other, and print what stands below them.

`scripts/update_goldens` writes these outputs anew.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.functions import bundled_trace

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
EXAMPLE = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n(?P<head><!-- output: made by [^\n]* -->)\n.*?<!-- end -->)?",
    flags=re.DOTALL | re.MULTILINE,
)


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def printed(code: str, names: dict[str, object]) -> str:
    """What an example prints; `names` are those that examples before it have made."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, PAGE.name, "exec"), names)
    # pandas fills the lines of a table up with blanks.
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


@pytest.mark.thorough
def test_examples_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.sqlite").write_bytes(gzip.decompress(bundled_trace()))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}

    def shown(found: re.Match[str]) -> str:
        output, example = printed(found["code"], names), f"```python\n{found['code']}```"
        if found["head"] is None:
            return example
        assert output
        return f"{example}\n\n{found['head']}\n\n```text\n{output}\n```\n\n<!-- end -->"

    made = EXAMPLE.sub(shown, text())
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS") == "1":
        PAGE.write_text(made, encoding="utf-8")
    assert text() == made


def test_every_public_name() -> None:
    assert [name for name in nsysdiag.__all__ if f"`{name}`" not in text()] == []


def test_every_example_is_found() -> None:
    assert len(EXAMPLE.findall(text())) == text().count("```python\n") >= 10
    assert text().count("<!-- output: made by") == text().count("<!-- end -->")


@pytest.mark.checkout
def test_paths_lead_somewhere() -> None:
    named = re.findall(r"`((?:nsysdiag|docs|scripts|tests)/[\w./]*\w)`", text())
    assert [name for name in named if not (PAGE.parents[1] / name).exists()] == []
    assert named
