"""What a batch finds: in folders, by patterns, named outright; each once, and nothing that it made itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nsysdiag.batch.inputs import Found, find_inputs
from nsysdiag.ci.facts import BATCH_SCHEMA_VERSION, KIND, BatchSummary
from nsysdiag.messages import UsageError
from nsysdiag.record import to_json
from nsysdiag.report import Tool
from tests.output import samples


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a folder `runs` of two ranks."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    put("runs/rank0/report.sqlite", "runs/rank1/report.sqlite")
    return tmp_path / "here"


def put(*names: str, content: bytes = b"x") -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)


def find(*named: str, output: str = "out") -> Found:
    return find_inputs(named, Path(output).absolute())


def shown(found: Found) -> list[str]:
    return [each.shown for each in found.inputs]


def names(found: Found) -> list[str]:
    return [each.name for each in found.inputs]


RANKS = ["runs/rank0/report.sqlite", "runs/rank1/report.sqlite"]


@pytest.mark.usefixtures("here")
class TestFolders:
    def test_all_below(self) -> None:
        put("runs/readme.txt", "runs/deep/er/x.SQLITE")
        found = find("runs")
        assert shown(found) == ["runs/deep/er/x.SQLITE", *RANKS]
        assert names(found) == ["runs/deep/er/x", "runs/rank0/report", "runs/rank1/report"]
        assert found.notes == []

    def test_saved_reports_and_no_other_json(self) -> None:
        put("runs/saved.json", content=to_json(samples.one_device()))
        put("runs/config.json", content=b'{"tool": {"name": "nsysdiag"}}')
        put("runs/other.json", content=b'{"tool": {"name": "other"}, "schema_version": "1", "trace": {}}')
        put("runs/list.json", content=b'["nsysdiag"]')
        put("runs/empty.json", content=b"")
        put("runs/broken.json", content=b'{"tool": {"name": "nsysdiag"')
        summary = BatchSummary(
            schema_version=BATCH_SCHEMA_VERSION,
            kind=KIND,
            tool=Tool(name="nsysdiag", version="1"),
            entries=[],
            failed=0,
            broken=0,
            warned=0,
        )
        put("runs/summary.json", content=to_json(summary))
        assert shown(find("runs")) == [*RANKS, "runs/saved.json"]

    def test_a_pipe_is_no_saved_report(self) -> None:
        os.mkfifo("runs/pipe.json")
        assert shown(find("runs")) == RANKS

    def test_links_to_folders_are_not_followed(self) -> None:
        put("elsewhere/x.sqlite")
        Path("runs/link").symlink_to(Path("elsewhere").absolute(), target_is_directory=True)
        Path("runs/loop").symlink_to(Path("runs").absolute(), target_is_directory=True)
        assert shown(find("runs")) == RANKS
        assert shown(find("runs/link")) == ["runs/link/x.sqlite"]  # but what is named is meant

    def test_links_to_files_are(self) -> None:
        put("elsewhere/x.sqlite")
        Path("runs/a.sqlite").symlink_to(Path("elsewhere/x.sqlite").absolute())
        assert shown(find("runs")) == ["runs/a.sqlite", *RANKS]
        assert len(find("runs", "elsewhere").inputs) == 3

    def test_results_are_no_inputs(self) -> None:
        put("runs/out/a.sqlite")
        assert shown(find("runs", output="runs/out")) == RANKS
        assert shown(find("runs/**/*.sqlite", output="runs/out")) == RANKS
        assert shown(find("runs/out/a.sqlite", output="runs/out")) == ["runs/out/a.sqlite"]

    @pytest.mark.parametrize("folder", ["out", "out/deeper"])
    def test_the_folder_of_the_results_is_not_searched(self, folder: str) -> None:
        put("out/deeper/x.sqlite")
        with pytest.raises(UsageError, match="is in the folder that the reports go to"):
            find(folder)

    def test_a_folder_that_cannot_be_searched_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = os.scandir

        def refuse(path: str) -> object:
            if str(path).endswith("rank0"):
                raise PermissionError(13, "Permission denied", path)
            return original(path)

        monkeypatch.setattr(os, "scandir", refuse)
        found = find("runs")
        assert [each.problem for each in found.inputs] == ["the folder cannot be searched: Permission denied", ""]
        assert shown(found) == ["runs/rank0", RANKS[1]]


@pytest.mark.usefixtures("here")
class TestForms:
    """A trace that lies side by side as a report of nsys, as Parquet files and as an SQLite file is one trace."""

    def test_reports_of_nsys_are_found(self) -> None:
        put("runs/a.nsys-rep", "runs/b.QDREP", "runs/c.qdstrm")
        assert shown(find("runs")) == ["runs/a.nsys-rep", "runs/b.QDREP", *RANKS]

    def test_the_form_that_is_read_soonest_stays(self) -> None:
        put("runs/a.nsys-rep", "runs/a_pqtdir/StringIds.parquet")
        put("runs/b.nsys-rep", "runs/b_pqtdir/StringIds.parquet", "runs/b.sqlite")
        put("runs/sub/b.nsys-rep")
        found = find("runs")
        assert shown(found) == ["runs/a_pqtdir", "runs/b.sqlite", *RANKS, "runs/sub/b.nsys-rep"]
        assert sorted(note.partition(" is the same trace")[0] for note in found.notes) == [
            "runs/a.nsys-rep is left out: a_pqtdir next to it",
            "runs/b.nsys-rep is left out: b.sqlite next to it",
            "runs/b_pqtdir is left out: b.sqlite next to it",
        ]

    def test_an_export_older_than_its_report_is_told(self) -> None:
        put("runs/a.nsys-rep", "runs/a.sqlite")
        for name, seconds in (("runs/a.sqlite", 1_000), ("runs/a.nsys-rep", 2_000)):
            os.utime(name, (seconds, seconds))
        (note,) = find("runs").notes
        assert note.endswith("it is the older of the two: remove it if the report has changed since")
        os.utime("runs/a.sqlite", (3_000, 3_000))
        (note,) = find("runs").notes
        assert note.endswith("is the same trace")

    def test_what_is_named_is_kept(self) -> None:
        put("runs/a.nsys-rep", "runs/a.sqlite")
        found = find("runs/a.nsys-rep", "runs/a.sqlite")
        assert (names(found), found.notes) == (["runs/a", "runs/a-2"], [])


@pytest.mark.usefixtures("here")
class TestNamed:
    def test_twice_counts_once(self) -> None:
        found = find("runs", "runs/rank0/report.sqlite", "./runs/../runs/rank1/report.sqlite", "runs")
        assert shown(found) == RANKS

    def test_whatever_it_is_called(self) -> None:
        put("odd.trace")
        assert shown(find("odd.trace", "missing.sqlite")) == ["missing.sqlite", "odd.trace"]

    def test_the_current_folder(self) -> None:
        assert names(find(".")) == ["runs/rank0/report", "runs/rank1/report"]

    def test_outside_of_the_current_folder(self, here: Path) -> None:
        put("../far/a/x.sqlite", "../far/b/x.sqlite")
        assert shown(find("../far")) == ["far/a/x.sqlite", "far/b/x.sqlite"]
        assert shown(find("../far/a", "../far/b/x.sqlite")) == ["a/x.sqlite", "b/x.sqlite"]
        assert shown(find(str(here.parent / "far" / "a" / "x.sqlite"))) == ["x.sqlite"]
        assert shown(find("../far/a", "runs")) == ["a/x.sqlite", *RANKS]

    def test_control_characters_are_shown(self) -> None:
        put("a\x1b[31m.sqlite")
        (each,) = find("a\x1b[31m.sqlite").inputs
        assert (each.shown, each.name) == ("a\\x1b[31m.sqlite", "a_x1b[31m")


@pytest.mark.usefixtures("here")
class TestPatterns:
    @pytest.mark.parametrize(
        "pattern", ["runs/*/report.sqlite", "runs/rank?/*", "runs/**/*.sqlite", "runs/**", "**/report.sqlite", "r*"]
    )
    def test_what_fits(self, pattern: str) -> None:
        assert shown(find(pattern)) == RANKS

    def test_a_file_of_that_very_name_comes_first(self) -> None:
        put("runs/rank[0]/report.sqlite")
        assert shown(find("runs/rank[0]/report.sqlite")) == ["runs/rank[0]/report.sqlite"]

    def test_hidden_names_and_links_fit_nothing(self) -> None:
        put("runs/.hidden/report.sqlite")
        Path("runs/link").symlink_to(Path("runs/rank0").absolute(), target_is_directory=True)
        assert shown(find("runs/*/report.sqlite")) == RANKS
        assert shown(find("runs/**/report.sqlite")) == RANKS
        assert shown(find("runs/.h*/report.sqlite")) == ["runs/.hidden/report.sqlite"]

    def test_nothing_that_fits_is_told(self) -> None:
        Path("empty").mkdir()
        found = find("runs", "x*.sqlite", "empty")
        assert shown(found) == RANKS
        assert found.notes == ["nothing fits x*.sqlite", "nothing is a trace or a saved report in empty"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["x*.sqlite"], "no input: nothing fits x"),
        ([""], "an input without a name"),
        (["x" * 300], "does not exist"),
        (["nowhere.sqlite"], "no input: nowhere.sqlite does not exist"),
    ],
)
def test_no_input(named: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find(*named)


def test_a_saved_report_that_cannot_be_read_is_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("runs/old.json")

    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("nsysdiag.batch.inputs.is_report_of_a_trace", refuse)
    found = find("runs")
    assert shown(found) == RANKS
    assert found.notes == ["runs/old.json is left out: it cannot be read: Permission denied"]


def test_a_pattern_passes_over_folders_that_cannot_be_listed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.scandir

    def scandir(path: Path) -> object:
        if Path(path).name == "rank0":
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr("nsysdiag.batch.inputs.os.scandir", scandir)
    assert shown(find("runs/*/*.sqlite")) == RANKS[1:]
