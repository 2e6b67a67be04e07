"""What a notebook or a prompt of Python shows of a record, and what `save` and its neighbours write."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

import nsysdiag
from nsysdiag.cli.app import app
from nsysdiag.config.settings import CostSettings
from nsysdiag.document.one_line import LONGEST
from nsysdiag.findings.facts import Finding
from nsysdiag.functions import bundled_trace
from nsysdiag.messages import InputError, NotComparableError, OutputError, UsageError
from nsysdiag.record import Record, to_json
from nsysdiag.report import DeviceReport, Gap
from tests.output import compare_samples, rank_samples, whatif_samples
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import HOSTILE, REPLAYED, SAMPLES, device, finding, gap, one_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS: dict[str, Callable[[], Any]] = {
    "report": one_device,
    "ranks": rank_samples.ranks_report,
    "comparison": compare_samples.comparison,
    "prediction": whatif_samples.whatif,
}
SUFFIXES = {"html": "to_html", "md": "to_markdown", "json": "to_json"}


@pytest.fixture(scope="module")
def demo_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled trace as a file."""
    path = tmp_path_factory.mktemp("trace") / "train.sqlite"
    path.write_bytes(gzip.decompress(bundled_trace()))
    return path


def command_line(*arguments: str | Path) -> None:
    """A command that succeeds."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output


def shown_in(record: object) -> Iterator[Record]:
    """The records anywhere in a document that are shown as one line."""
    if isinstance(record, nsysdiag.Report | nsysdiag.Comparison | DeviceReport | Gap | Finding):
        yield record
    if isinstance(record, Record):
        for name in record.__struct_fields__:
            yield from shown_in(getattr(record, name))
    elif isinstance(record, list):
        for each in record:
            yield from shown_in(each)


class TestOneLine:
    @pytest.mark.parametrize("sample", EVERY_SAMPLE)
    def test_short_and_printable(self, sample: str) -> None:
        found = list(shown_in(SAMPLES[sample]()))
        assert found
        for each in found:
            assert repr(each).startswith(f"<{type(each).__name__} ")
            assert len(repr(each)) <= LONGEST
            assert repr(each).isprintable()

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_names(self, name: str) -> None:
        bad = replace(gap(name=name), nvtx=[name])
        found = [bad, device(key=name, name=name), finding(title=name, severity=name, device=name, devices=[name] * 9)]
        for each in [*found, compare_samples.hostile()]:
            assert len(repr(each)) <= LONGEST
            assert repr(each).isprintable()

    def test_what_they_say(self) -> None:
        report = one_device()
        assert repr(report) == "<Report 'train.sqlite': 1 GPU, 3 findings; Kernels take 45% of each 5.00 ms step.>"
        assert repr(report.devices[0]) == "<DeviceReport gpu0 'NVIDIA H100 80GB HBM3': 100 ms, 40.0% idle, 1,234 gaps>"
        assert repr(report.devices[0].gaps[0]).startswith("<Gap 400 µs at 100,000,000 ns, sync in forward before ")
        assert repr(report.findings[0]).endswith("The step ends in a stream synchronisation, 17.0 ms lost>")
        assert repr(finding(lost_ns=0, saves=REPLAYED)).endswith("stream synchronisation, saves 31 to 36%>")
        assert repr(compare_samples.comparison()).startswith("<Comparison 'before-train.sqlite' → 'after-train.sqlite'")
        assert repr(rank_samples.ranks_report()).startswith("<RanksReport 4 ranks in 2 traces")
        assert repr(whatif_samples.whatif()) == "<WhatIf 'train.sqlite': step 34.9 ms → 18.9 ms>"

    def test_a_long_line_is_cut_at_its_end(self) -> None:
        report = one_device()
        assert report.diagnosis is not None
        long = replace(report, diagnosis=replace(report.diagnosis, headline="word " * 99))
        assert repr(long).startswith("<Report 'train.sqlite': 1 GPU, 3 findings; word word ")
        assert repr(long).endswith(" word word …>")
        assert len(repr(long)) == LONGEST


class TestSave:
    @pytest.mark.sampled(quick=5)
    @pytest.mark.parametrize("document", DOCUMENTS)
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_file_and_text_are_the_bytes_of_the_command_line(self, document: str, suffix: str, tmp_path: Path) -> None:
        made, written, saved = DOCUMENTS[document](), tmp_path / f"cli.{suffix}", tmp_path / f"python.{suffix}"
        (tmp_path / "saved.json").write_bytes(to_json(made))
        command_line("render", tmp_path / "saved.json", "-o", written)
        made.save(saved)
        text = getattr(made, SUFFIXES[suffix])()
        assert written.read_bytes() == saved.read_bytes() == text.encode()
        assert len(text) > 1000

    @pytest.mark.parametrize("document", ["report", "ranks"])
    def test_csv_comes_with_its_tables(self, document: str, tmp_path: Path) -> None:
        made = DOCUMENTS[document]()
        (tmp_path / "saved.json").write_bytes(to_json(made))
        for folder in ("cli", "python"):
            (tmp_path / folder).mkdir()
        command_line("render", tmp_path / "saved.json", "-o", tmp_path / "cli" / "x.csv")
        made.save(str(tmp_path / "python" / "x.csv"))
        files = {path.name: path.read_bytes() for path in (tmp_path / "cli").iterdir()}
        assert {path.name: path.read_bytes() for path in (tmp_path / "python").iterdir()} == files
        assert len(files) > 3

    @pytest.mark.slow
    def test_file_of_others_stays_unless_forced(self, tmp_path: Path) -> None:
        path, report = tmp_path / "x.html", one_device()
        path.write_text("mine")
        with pytest.raises(OutputError, match="was not written by nsysdiag"):
            report.save(path)
        assert path.read_text() == "mine"
        report.save(path, force=True)
        first = path.read_bytes()
        report.save(path)
        assert path.read_bytes() == first != b"mine"

    def test_no_table_is_written_where_one_is_not_ours(self, tmp_path: Path) -> None:
        (tmp_path / "x.kernels.csv").write_text("mine")
        with pytest.raises(OutputError, match=r"x\.kernels\.csv"):
            one_device().save(tmp_path / "x.csv")
        assert [path.name for path in tmp_path.iterdir()] == ["x.kernels.csv"]

    @pytest.mark.slow
    def test_link_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "target.html").write_text("mine")
        (tmp_path / "x.html").symlink_to(tmp_path / "target.html")
        with pytest.raises(OutputError, match="symbolic link"):
            one_device().save(tmp_path / "x.html")
        one_device().save(tmp_path / "x.html", force=True)
        assert (tmp_path / "target.html").read_text() == "mine"

    @pytest.mark.parametrize("document", DOCUMENTS)
    def test_suffix_without_a_format(self, document: str, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no format has the suffix"):
            DOCUMENTS[document]().save(tmp_path / "x.docx")
        assert list(tmp_path.iterdir()) == []

    def test_format_that_a_comparison_has_not(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="a comparison cannot be written as sarif"):
            compare_samples.comparison().save(tmp_path / "x.sarif")
        assert list(tmp_path.iterdir()) == []

    def test_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(OutputError, match="does not exist"):
            one_device().save(tmp_path / "none" / "x.html")


class TestLoad:
    def test_saved_report_is_read(self, tmp_path: Path) -> None:
        path, report = tmp_path / "x.json", one_device()
        report.save(path)
        assert nsysdiag.load(path) == nsysdiag.load(str(path)) == report

    @pytest.mark.thorough
    def test_trace_is_analyzed(self, demo_trace: Path) -> None:
        assert nsysdiag.load(demo_trace) == nsysdiag.analyze(demo_trace)

    @pytest.mark.parametrize("document", ["ranks", "comparison", "prediction"])
    def test_other_documents_are_refused(self, document: str, tmp_path: Path) -> None:
        DOCUMENTS[document]().save(tmp_path / "x.json")
        with pytest.raises(InputError, match="of one trace"):
            nsysdiag.load(tmp_path / "x.json")

    @pytest.mark.parametrize(
        ("content", "match"),
        [("{}", "not a nsysdiag report"), ("{", "not a nsysdiag report"), ("text", "is not an SQLite file")],
    )
    def test_file_of_others(self, content: str, match: str, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(InputError, match=match):
            nsysdiag.load(tmp_path / "x.json")

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not exist"):
            nsysdiag.load(tmp_path / "none.json")


@pytest.mark.thorough
def test_compare_takes_traces_saved_reports_and_reports(demo_trace: Path, tmp_path: Path) -> None:
    report = nsysdiag.analyze(demo_trace)
    report.save(tmp_path / "x.json")
    made = nsysdiag.compare(tmp_path / "x.json", str(demo_trace))
    assert [made.before[0].given, made.after[0].given] == ["x.json", ""]
    assert nsysdiag.compare(report, report).devices == made.devices
    out = tmp_path / "compared.json"
    command_line("compare", tmp_path / "x.json", demo_trace, "--no-config", "-o", out)
    assert out.read_text(encoding="utf-8") == made.to_json()


def test_a_redacted_report_is_not_compared_and_its_file_not_named(tmp_path: Path) -> None:
    hidden = replace(one_device(), settings={"redacted": "numbered"})
    hidden.save(tmp_path / "secret.json")
    with pytest.raises(NotComparableError, match="numbers instead of names") as refused:
        nsysdiag.compare(tmp_path / "secret.json", hidden)
    assert "secret" not in str(refused.value)


class TestAnalyzeASavedReport:
    @pytest.fixture
    def saved(self, tmp_path: Path) -> Path:
        path = tmp_path / "saved.json"
        one_device().save(path)
        return path

    def test_is_as_it_was_saved(self, saved: Path) -> None:
        assert nsysdiag.analyze(saved) == nsysdiag.analyze(str(saved)) == nsysdiag.load(saved) == one_device()

    def test_takes_a_price(self, saved: Path) -> None:
        priced = nsysdiag.analyze(saved, nsysdiag.Settings(cost=CostSettings(gpu_hour_cost=2.0)))
        assert priced.cost is not None
        assert priced.settings["cost"] == {"gpu_hour_cost": 2.0}

    def test_no_other_setting(self, saved: Path) -> None:
        with pytest.raises(UsageError, match=r"nvtx, gaps cannot be used with .* a saved report, already analyzed"):
            nsysdiag.analyze(saved, nsysdiag.Settings(gaps=3, nvtx="step"))

    def test_settings_that_it_was_made_with(self, tmp_path: Path) -> None:
        replace(one_device(), settings={"gaps": 3}).save(tmp_path / "saved.json")
        assert nsysdiag.analyze(tmp_path / "saved.json", nsysdiag.Settings(gaps=3)).settings == {"gaps": 3}


@pytest.mark.thorough
def test_python_loads_neither_pandas_nor_plotly(demo_trace: Path, tmp_path: Path) -> None:
    """To analyze, show and save a report; importing the package loads nothing of it all."""
    code = """
import json, sys
import nsysdiag
first = sorted(sys.modules)
report = nsysdiag.analyze(sys.argv[1])
report.save(sys.argv[2])
found = [repr(report), report.to_html(), nsysdiag.load(sys.argv[2]).to_markdown()]
assert all(found)
print(json.dumps([first, sorted(sys.modules)]))
"""
    line = [sys.executable, "-c", code, str(demo_trace), str(tmp_path / "x.json")]
    first, last = json.loads(subprocess.run(line, cwd=ROOT, capture_output=True, check=True).stdout)
    heavy = {"msgspec", "numpy", "jinja2", "rich", "sqlalchemy"}
    assert {name for name in first if name.startswith("nsysdiag")} == {"nsysdiag", "nsysdiag.version"}
    assert heavy & set(first) == set()
    assert {"msgspec", "numpy", "jinja2"} <= set(last), "modules are seen"
    assert {"pandas", "plotly"} & set(last) == set()
