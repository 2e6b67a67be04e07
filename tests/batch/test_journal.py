"""What is finished, line by line: found again, whatever became of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from nsysdiag.batch.task import JOURNAL, BatchJournal, Done, work
from nsysdiag.messages import OutputError
from tests.batch.loads import tasks_of


@pytest.fixture
def done(tmp_path: Path) -> Done:
    """What a batch wrote down of an input that it analyzed."""
    (task,) = tasks_of(tmp_path, "a")
    found = work(replace(task, shared=replace(task.shared, resume=True))).done
    assert found is not None
    return found


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert BatchJournal(tmp_path).read() == {}


@pytest.mark.slow
def test_a_damaged_line_says_nothing_and_hides_no_other(tmp_path: Path, done: Done) -> None:
    journal = BatchJournal(tmp_path)
    journal.begin([done], force=False)
    with journal.path.open("ab") as file:
        file.write(b'{"tool": "other"}\n{"tool": "nsysd\n\xff\n')
    journal.add(done)
    assert BatchJournal(tmp_path).read() == {"a": done}
    journal.finish()
    assert journal.path.read_bytes().count(b"\n") == 1


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path, done: Done) -> None:
    (tmp_path / JOURNAL).mkdir()
    with pytest.raises(OutputError, match=f"cannot read .*{JOURNAL}: Is a directory"):
        BatchJournal(tmp_path).read()
    with pytest.raises(OutputError, match=f"cannot write .*{JOURNAL}: Is a directory"):
        BatchJournal(tmp_path).add(done)
