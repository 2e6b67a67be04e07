"""What is raised to callers in Python prints as it stands, whatever files are called and hold."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nsysdiag
from nsysdiag import saved as saved_files
from nsysdiag.messages import InputError, NsysdiagError, OutputError
from tests.output.samples import one_device

if TYPE_CHECKING:
    from collections.abc import Callable

ODD = "\x1b[31mred\u202e\n.json"
SHOWN = r"\x1b[31mred\u202e\n.json"
TOOL = {"name": "nsysdiag", "version": "9.9"}
DOCUMENTS = {
    "no report": "{}",
    "not ours": {"schema_version": "2", "tool": {"name": "other"}},
    "another version": {"schema_version": "99", "tool": TOOL},
    "damaged": {"schema_version": "2", "tool": TOOL},
    "of ranks": {"schema_version": "2", "tool": TOOL, "kind": "ranks"},
    "a prediction": {"schema_version": "2", "tool": TOOL, "kind": "whatif"},
    "no JSON": "{" + ODD,
}
CALLS: dict[str, Callable[[Path], object]] = {
    "load": nsysdiag.load,
    "compare": lambda path: nsysdiag.compare(path, path),
    "read_document": saved_files.read_document,
}


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A path that would act on a terminal."""
    return tmp_path / ODD


def raised(call: Callable[[], object], kind: type[NsysdiagError] = InputError) -> str:
    """The message, which prints; so does the hint."""
    with pytest.raises(kind) as caught:
        call()
    message, hint = caught.value.message, caught.value.hint
    assert str(caught.value) == message
    assert message.isprintable()
    assert hint is None or hint.isprintable()
    return message


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_saved_reports(document: str, call: str, odd: Path) -> None:
    content = DOCUMENTS[document]
    odd.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    assert SHOWN in raised(lambda: CALLS[call](odd))


def test_a_saved_report_that_is_too_large(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsysdiag.limits.SAVED_BYTES", 10)
    odd.write_text("{" + " " * 20)
    assert SHOWN in raised(lambda: nsysdiag.load(odd))


def test_what_is_missing(odd: Path) -> None:
    for call in (nsysdiag.load, nsysdiag.analyze, saved_files.read_document):
        assert SHOWN in raised(lambda call=call: call(odd))  # type: ignore[misc]


def test_an_output_that_is_not_ours(odd: Path) -> None:
    odd.write_text("mine")
    assert SHOWN in raised(lambda: one_device().save(odd), OutputError)


def test_a_hint_and_a_pickle() -> None:
    error = InputError("a\x07", hint="b\x07")
    again = pickle.loads(pickle.dumps(error))
    assert (error.message, error.hint, str(again)) == (r"a\x07", r"b\x07", r"a\x07")
