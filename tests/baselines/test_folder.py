"""Folders of baselines: the last runs are kept, nothing of others is touched, and jobs may add at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nsysdiag import baselines as folders
from nsysdiag.baselines import add, folder_of, held_in, names_in, runs_in
from nsysdiag.messages import OutputError, UsageError
from nsysdiag.record import to_json
from nsysdiag.report import Report
from tests.output import samples

ROOT = Path(__file__).parents[2]


def report(number: int) -> Report:
    """One of many, each of another trace."""
    made = samples.one_device()
    return replace(made, trace=replace(made.trace, file=f"run{number}.sqlite", fingerprint=f"trace {number}"))


def files(folder: Path) -> list[str]:
    return [each.trace.file for _run, each in held_in(folder).runs]


class TestAdd:
    def test_the_last_runs_are_kept_in_their_order(self, tmp_path: Path) -> None:
        for number in range(5):
            add(tmp_path / "main", [report(number)], 3)
        assert files(tmp_path / "main") == ["run2.sqlite", "run3.sqlite", "run4.sqlite"]

    def test_runs_of_one_command_stay_in_their_order(self, tmp_path: Path) -> None:
        added, removed = add(tmp_path / "main", [report(number) for number in range(12)], 10)
        assert (len(added), removed) == (12, 2)
        assert files(tmp_path / "main") == [f"run{number}.sqlite" for number in range(2, 12)]

    def test_the_same_trace_is_no_further_run(self, tmp_path: Path) -> None:
        add(tmp_path / "main", [report(0), report(1)], 10)
        again = replace(report(1), settings={"gaps": 7})
        assert add(tmp_path / "main", [again, report(2), report(2)], 10)[0] == [runs_in(tmp_path / "main")[-1].path]
        assert files(tmp_path / "main") == ["run0.sqlite", "run1.sqlite", "run2.sqlite"]

    def test_begins_anew(self, tmp_path: Path) -> None:
        add(tmp_path / "main", [report(number) for number in range(4)], 10)
        added, removed = add(tmp_path / "main", [report(3), report(9)], 10, anew=True)
        assert (len(added), removed) == (1, 3)
        assert files(tmp_path / "main") == ["run3.sqlite", "run9.sqlite"]

    def test_a_clock_that_goes_back_changes_no_order(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number, seconds in enumerate((2000.0, 1000.0, 1500.0)):
            monkeypatch.setattr(folders.time, "time", lambda seconds=seconds: seconds)
            add(tmp_path / "main", [report(number)], 10)
        assert files(tmp_path / "main") == ["run0.sqlite", "run1.sqlite", "run2.sqlite"]
        assert runs_in(tmp_path / "main")[0].added == datetime(1970, 1, 1, 0, 33, 20, tzinfo=UTC)

    def test_has_no_timeline(self, tmp_path: Path) -> None:
        made = report(0)
        assert made.timeline is not UNSET
        ((path,), _removed) = add(tmp_path / "main", [made], 10)
        assert path.read_bytes() == to_json(replace(made, timeline=UNSET))

    def test_files_of_others_stay(self, tmp_path: Path) -> None:
        folder = tmp_path / "main"
        folder.mkdir()
        ours = "20200101T000000000000Z-0123456789abcdef.json"
        foreign = {"mine.json": b"{}", "notes.txt": b"x", ours: b"not ours, whatever it is called"}
        for name, data in foreign.items():
            (folder / name).write_bytes(data)
        (folder / "own.json").write_bytes(to_json(report(7)))
        for number in range(3):
            add(folder, [report(number)], 1)
        assert {name: (folder / name).read_bytes() for name in foreign} == foreign
        assert files(folder) == ["run2.sqlite", "run7.sqlite"]
        assert held_in(folder).damaged == [ours, "mine.json"]

    def test_leaves_no_temporary_file(self, tmp_path: Path) -> None:
        add(tmp_path / "main", [report(0)], 1)
        assert [each.suffix for each in (tmp_path / "main").iterdir()] == [".json"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(OutputError):
            add(tmp_path / "main", [report(0)], 1)

    def test_a_file_in_the_place_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "main").write_text("mine")
        with pytest.raises(OutputError, match="cannot make the folder"):
            add(tmp_path / "main", [report(0)], 1)


class TestRead:
    def test_damaged_files_are_named_and_do_not_stop_the_rest(self, tmp_path: Path) -> None:
        (whole, half), _removed = add(tmp_path, [report(0), report(1)], 10)
        half.write_bytes(half.read_bytes()[:5000])
        held = held_in(tmp_path)
        assert [run.path for run, _report in held.runs] == [whole]
        assert held.damaged == [half.name]

    def test_what_another_job_removes_meanwhile_is_not_damaged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (gone, left), _removed = add(tmp_path, [report(0), report(1)], 10)
        read = folders.read_report

        def removing(path: Path) -> Report:
            gone.unlink(missing_ok=True)
            return read(path)

        monkeypatch.setattr(folders, "read_report", removing)
        held = held_in(tmp_path)
        assert ([run.path for run, _report in held.runs], held.damaged) == ([left], [])

    def test_nothing_where_there_is_no_folder(self, tmp_path: Path) -> None:
        assert runs_in(tmp_path / "none") == []
        assert names_in(tmp_path / "none") == []

    def test_names(self, tmp_path: Path) -> None:
        for name in ("main", "a100", ".hidden"):
            (tmp_path / name).mkdir()
        (tmp_path / "file").write_text("")
        assert names_in(tmp_path) == ["a100", "main"]

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "-x", "x" * 101, "a b", "ä", "a\n"])
    def test_names_that_are_none(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError, match="is not a name of a baseline"):
            folder_of(tmp_path, name)


JOB = """
import sys
from pathlib import Path
from nsysdiag.baselines import add
from tests.baselines.test_folder import report
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 10):
    add(Path(sys.argv[1]), [report(number)], 5)
"""


@pytest.mark.thorough
def test_jobs_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each of three adds ten runs: the last ones of all are left, whole, and of every job the last one was written."""
    jobs = [
        subprocess.Popen([sys.executable, "-c", JOB, str(tmp_path / "main"), str(start)], cwd=ROOT)
        for start in (0, 10, 20)
    ]
    assert [job.wait() for job in jobs] == [0, 0, 0]
    add(tmp_path / "main", [report(99)], 5)
    held = held_in(tmp_path / "main")
    assert (len(held.runs), held.damaged) == (5, [])
    assert held.runs[-1][1].trace.file == "run99.sqlite"
    assert {each.suffix for each in (tmp_path / "main").iterdir()} == {".json"}
