"""One input of a batch: whatever is wrong with it becomes its entry."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from nsysdiag.batch.task import work
from tests.batch.loads import tasks_of


def test_an_input_that_could_not_even_be_found(tmp_path: Path) -> None:
    (task,) = tasks_of(tmp_path, "a")
    entry = work(replace(task, input=replace(task.input, problem="Permission denied"))).entry
    assert (entry.status, entry.error) == ("failed", "'a.json': Permission denied")
    assert entry.hint == "ask for permission to read it"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file stands where the folder of the outputs should."""
    (task,) = tasks_of(tmp_path, "a")
    outcome = work(
        replace(task, input=replace(task.input, name="b/a"), shared=replace(task.shared, folder=task.input.path))
    )
    assert outcome.done is None
    assert outcome.entry.status == "failed"
    assert "cannot make the folder" in outcome.entry.error


def test_each_of_them_says_what_it_was(tmp_path: Path) -> None:
    found = {task.input.name: work(task).entry for task in tasks_of(tmp_path, "good", "wrong", "full", "bug")}
    assert {name: entry.status for name, entry in found.items()} == {
        "good": "analysed",
        "wrong": "failed",
        "full": "failed",
        "bug": "failed",
    }
    assert found["full"].error == "not enough memory to analyze 'full.json'"
    assert found["bug"].error == "this is a bug in nsysdiag: ZeroDivisionError: division by zero"
