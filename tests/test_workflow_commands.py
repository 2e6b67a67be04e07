"""No text that reaches a log holds a workflow command, and what it says stays the same."""

from __future__ import annotations

import html
import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsysdiag.messages import JOINER, JSON, MARKUP, TEXT, without_workflow_commands
from tests.hostile.runners import SYSTEMS, WHITE, commands, systems

COMMANDS = (
    "::error file=a.cc,line=1::message",
    "::Set-Output name=a::b",
    "::stop-commands::word",
    "::word::",
    "##[error]message",
    "###[Set-Env name=A]b",
    "##vso[task.setvariable variable=a]b",
    "##VSO[Task.LogIssue type=error]b",
    "##teamcity[message text='a']",
    "section_start:1560896352:name[collapsed=true]",
    "travis_fold:start:name",
)
BEFORE = (
    "",
    " ",
    "\t",
    *WHITE,
    "\x1b[1m",
    "\x1b[38;5;1m \x1b[2m",
    "\ufeff",
    "\u200b",
    "\x00",
    "a",
    "a ",
    "a::b\n",
    "|",
)
PIECES = [*COMMANDS, *BEFORE, *JOINER, "#", "##", ":", "::", "[", "]", "section_", "a", "\n", "\r\n", "\u2028"]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def test_every_system_is_tried() -> None:
    assert systems("\n".join(COMMANDS)) == set(SYSTEMS)


@pytest.mark.parametrize("syntax", [TEXT, JSON, MARKUP])
def test_every_command_is_broken(syntax: str) -> None:
    texts = [f"{before}{command}\nb\n{before}{command}" for before in BEFORE for command in COMMANDS]
    assert [text for text in texts if commands(without_workflow_commands(text, syntax))] == []


@given(texts)
@example("\r\n::error::")
def test_nothing_is_left_and_nothing_else_changes(text: str) -> None:
    done = without_workflow_commands(text)
    assert not commands(done)
    assert done.replace(JOINER, "") == text.replace(JOINER, "")
    assert without_workflow_commands(done) == done


@given(texts)
def test_a_json_value_stays(text: str) -> None:
    """The characters that some take for line ends stand in JSON as they are."""
    data = json.dumps({text: [text]}, ensure_ascii=False, indent=2)
    done = without_workflow_commands(data, JSON)
    assert not commands(done)
    assert json.loads(done) == {text: [text]}


@given(texts.map(lambda text: re.sub("[^\t\n -\ud7ff]", "", text)))
def test_the_text_of_markup_stays(text: str) -> None:
    root = ElementTree.Element("a", {"b": text})
    root.text = text
    done = without_workflow_commands(ElementTree.tostring(root, encoding="unicode"), MARKUP)
    assert not commands(done)
    again = ElementTree.fromstring(done)
    assert (again.text or "", again.get("b")) == (text, text)


@pytest.mark.parametrize(
    "name", ["at::native::fill", "a ::b::c", "a#[b]", "# #[b]", "## [b]", "section_start::f", "a:b"]
)
def test_names_of_programs_can_be_copied(name: str) -> None:
    assert without_workflow_commands(f"kernel {name}") == f"kernel {name}"


def test_scripts_and_styles_stay_and_their_data_is_json() -> None:
    """Their hashes are in the policy of the page; they are the program's own."""
    own = "<style>\n::before::after{}</style><script>\n::error::</script>"
    data = '<script type="application/json" class="x">{"a":"##[error]"}</script>'
    done = without_workflow_commands(f"{own}<p>##[error]\n ::error::</p>{data}", MARKUP)
    assert done.startswith(own)
    assert html.unescape("<p>##[error]\n ::error::</p>") in html.unescape(done)
    assert done.endswith('{"a":"\\u0023#[error]"}</script>')


@pytest.mark.slow
def test_work_grows_with_the_text() -> None:
    """Each of these would take minutes if a run of one character were searched again from each of its places."""
    size = 2_000_000
    for text in ("\n" * size, "\n" + " " * size, "#" * size, "\x1b[ " * size, ":" * size):
        assert len(without_workflow_commands(text)) >= len(text)
