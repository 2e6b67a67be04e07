"""`nsysdiag analyze`: what goes where, what is refused before the work, and which settings the options make."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.config.settings import OPTION_OF_SETTING, Settings
from nsysdiag.document.one_line import command_of
from nsysdiag.formats import FORMATS
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.output import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import FakeAnalysis, Result


@pytest.mark.usefixtures("analysis")
class TestOutputs:
    def test_no_output_writes_html_here_and_a_summary(
        self, cli: Callable[..., Result], trace: Path, folder: Path
    ) -> None:
        result = cli("analyze", trace)
        assert result.code == 0
        assert {path.name for path in folder.iterdir()} == {"train.sqlite", "train.nsysdiag.html"}
        assert b"<html" in (folder / "train.nsysdiag.html").read_bytes()
        assert result.stdout
        assert result.stderr == "wrote train.nsysdiag.html\n"

    def test_report_lands_in_the_current_folder(
        self, cli: Callable[..., Result], folder: Path, monkeypatch: pytest.MonkeyPatch, trace: Path
    ) -> None:
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        assert cli("analyze", folder / trace).code == 0
        assert (elsewhere / "train.nsysdiag.html").exists()

    @pytest.mark.parametrize("name", sorted(FORMATS))
    def test_suffix_picks_the_format(self, cli: Callable[..., Result], trace: Path, folder: Path, name: str) -> None:
        path = f"out{FORMATS[name].suffix}"
        assert cli("analyze", trace, "-o", path).code == 0
        assert FORMATS[name].is_ours((folder / path).read_bytes())

    def test_outputs_repeat(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        result = cli("analyze", trace, "-o", "a.json", "-o", "b.md", "-o", "c.html")
        assert result.code == 0
        assert {"a.json", "b.md", "c.html"} < {path.name for path in folder.iterdir()}
        assert result.stderr.splitlines() == ["wrote a.json", "wrote b.md", "wrote c.html"]

    def test_csv_writes_one_file_a_table(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        result = cli("analyze", trace, "-o", "x.csv")
        assert {"x.csv", "x.kernels.csv", "x.ledger.csv"} < {path.name for path in folder.iterdir()}
        assert (folder / "x.csv").read_bytes().startswith(b"device,start_ns,end_ns")
        assert "wrote x.kernels.csv" in result.stderr

    @pytest.mark.parametrize("name", sorted(FORMATS))
    def test_dash_is_stdout_and_nothing_else_is_on_it(
        self, cli: Callable[..., Result], trace: Path, folder: Path, name: str
    ) -> None:
        result = cli("analyze", trace, "-o", "-", "--format", name)
        assert result.code == 0
        assert FORMATS[name].is_ours(result.stdout)
        assert result.stderr == ""
        assert [path.name for path in folder.iterdir()] == ["train.sqlite"]

    def test_dash_beside_a_file(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        result = cli("analyze", trace, "-o", "a.html", "-o", "-", "--format", "json")
        assert json.loads(result.stdout)["tool"]["name"] == "nsysdiag"
        assert (folder / "a.html").exists()

    def test_quiet_says_nothing(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        result = cli("analyze", trace, "--quiet")
        assert (result.code, result.stdout, result.stderr) == (0, b"", "")
        assert (folder / "train.nsysdiag.html").exists()

    def test_format_without_output_names_the_file(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        assert cli("analyze", trace, "--format", "md").code == 0
        assert (folder / "train.nsysdiag.md").exists()

    def test_format_serves_a_suffix_that_says_nothing(
        self, cli: Callable[..., Result], trace: Path, folder: Path
    ) -> None:
        assert cli("analyze", trace, "-o", "report.out", "--format", "json").code == 0
        assert json.loads((folder / "report.out").read_bytes())["schema_version"]

    def test_open_opens_the_html(
        self, cli: Callable[..., Result], trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[str] = []
        monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
        assert cli("analyze", trace, "-o", "a.html", "-o", "b.json", "--open").code == 0
        assert opened == [(folder / "a.html").as_uri()]

    def test_no_browser_is_said_and_no_error(
        self, cli: Callable[..., Result], trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("webbrowser.open", lambda _url: False)
        result = cli("analyze", trace, "-o", "a.html", "--open")
        assert result.code == 0
        assert "no browser to open a.html with\n" in result.stderr

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("variables", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
    def test_a_terminal_gets_colours_unless_it_wants_none(
        self,
        cli: Callable[..., Result],
        trace: Path,
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
        colored: bool,
    ) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        result = cli("analyze", trace, "-o", "a.json", "-o", "b.html")
        assert result.code == 0
        assert (b"\x1b[" in result.stdout) == colored


class TestRefusedBeforeTheWork:
    """A long analysis is not wasted on an output that cannot be written."""

    @pytest.fixture(autouse=True)
    def _nothing_is_analyzed(self, analysis: FakeAnalysis) -> object:
        yield
        assert analysis.calls == []

    @pytest.mark.parametrize(
        ("outputs", "words"),
        [
            (("-o", "missing/x.html"), "does not exist"),
            (("-o", "x.docx"), "no format has the suffix"),
            (("-o", "-"), "needs a format"),
            (("-o", "x.html", "--format", "json"), "json is not used"),
            (("--format", "yaml"), "unknown format 'yaml'"),
            (("-o", "x.json", "-o", "./x.json"), "two outputs go to"),
            (("-o", "-", "-o", "-", "--format", "json"), "two outputs go to stdout"),
            (("-o", "x.csv", "-o", "x.kernels.csv"), "x.kernels.csv"),
            (("-o", "x.json", "--open"), "--open needs an HTML report"),
            (("-o", "train.sqlite", "--format", "json", "--force"), "is the input itself"),
        ],
    )
    def test_outputs(self, cli: Callable[..., Result], trace: Path, outputs: tuple[str, ...], words: str) -> None:
        result = cli("analyze", trace, *outputs)
        assert result.code == 2
        assert result.stdout == b""
        assert words in result.stderr

    @pytest.mark.parametrize("name", ["mine.html", "mine.json", "x.kernels.csv"])
    def test_foreign_file_is_not_overwritten(
        self, cli: Callable[..., Result], trace: Path, folder: Path, name: str
    ) -> None:
        (folder / name).write_text("precious")
        result = cli("analyze", trace, "-o", "x.csv" if name.endswith("csv") else name)
        assert result.code == 2
        assert "was not written by nsysdiag" in result.stderr
        assert (folder / name).read_text() == "precious"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_read_only_folder(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        closed = folder / "closed"
        closed.mkdir(mode=0o500)
        assert "is read-only" in cli("analyze", trace, "-o", closed / "x.html").stderr

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--from", "soon"), "'soon' is not a time"),
            (("--from", "2ms", "--to", "1ms"), "is empty"),
            (("--from", "1ms", "--nvtx", "step"), "--nvtx and --from/--to exclude each other"),
            (("--to", "", "--nvtx", "step"), "--nvtx and --from/--to exclude each other"),
            (("--iterations", "2:4", "--nvtx", "step"), "--nvtx and --iterations exclude each other"),
            (("--iterations", "2:4", "--to", "1ms"), "--iterations and --from/--to exclude each other"),
            (("--iterations", "2-4"), "'2-4' is not a range of iterations"),
            (("--iterations", ""), "'' is not a range of iterations"),
            (("--iterations", "4:2"), "no iteration is in '4:2'"),
        ],
    )
    def test_window(self, cli: Callable[..., Result], trace: Path, options: tuple[str, ...], words: str) -> None:
        result = cli("analyze", trace, *options)
        assert result.code == 2
        assert words in result.stderr

    def test_unknown_cause_lists_the_causes(self, cli: Callable[..., Result], trace: Path) -> None:
        result = cli("analyze", trace, "--disable", "lock_wai")
        assert result.code == 2
        assert "unknown cause 'lock_wai'; did you mean 'lock_wait'?" in result.stderr
        assert "uncovered" in result.stderr


class TestWriting:
    @pytest.mark.slow
    @pytest.mark.usefixtures("analysis")
    def test_our_own_file_is_overwritten(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        assert cli("analyze", trace, "-o", "x.html").code == 0
        assert cli("analyze", trace, "-o", "x.html").code == 0

    @pytest.mark.usefixtures("analysis")
    def test_force_overwrites_a_foreign_file(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        (folder / "x.html").write_text("precious")
        assert cli("analyze", trace, "-o", "x.html", "--force").code == 0
        assert b"<html" in (folder / "x.html").read_bytes()

    def test_one_failing_output_does_not_lose_the_others(
        self,
        cli: Callable[..., Result],
        trace: Path,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        analysis: FakeAnalysis,
    ) -> None:
        """Somebody puts a file of his own in the way while the analysis runs."""

        def blocked(*arguments: object) -> object:
            (folder / "b.json").write_text("precious")
            return analysis.report

        monkeypatch.setattr("nsysdiag.pipeline.analyze", blocked)
        result = cli("analyze", trace, "-o", "a.json", "-o", "b.json", "-o", "c.json")
        assert result.code == 2
        assert (folder / "b.json").read_text() == "precious"
        assert (folder / "a.json").exists()
        assert (folder / "c.json").exists()
        assert "nsysdiag: b.json exists" in result.stderr
        assert result.stdout  # the summary is not lost either


class TestSettings:
    def test_defaults(self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis) -> None:
        assert cli("analyze", trace).code == 0
        assert analysis.settings == Settings()
        assert analysis.calls[0][0] == trace

    def test_every_option(self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis) -> None:
        flags = ("--same-gpu", "--no-timeline", "--full-hash")
        values = ("--device", "1", "--from", "1.5ms", "--to", "3s", "--gaps", "0")
        assert cli("analyze", trace, *flags, *values, "--disable", "sync", "--disable", "io_wait").code == 0
        assert analysis.settings == Settings(
            device="1",
            same_gpu=True,
            timeline=False,
            full_hash=True,
            start_ns=1_500_000,
            end_ns=3_000_000_000,
            gaps=0,
            disabled=("sync", "io_wait"),
        )

    @pytest.mark.slow
    def test_nvtx(self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis) -> None:
        assert cli("analyze", trace, "--nvtx", "step").code == 0
        assert analysis.settings == Settings(nvtx="step")

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("3:10", (3, 10)),
            ("3:", (3, None)),
            (":10", (None, 10)),
            (":", (None, None)),
            ("7", (7, 8)),
            ("0", (0, 1)),
            ("-1", (-1, None)),
            ("-2", (-2, -1)),
            ("-5:", (-5, None)),
            ("1:-1", (1, -1)),
            ("-9:9", (-9, 9)),
            (" 3 : +10 ", (3, 10)),
        ],
    )
    def test_iterations(
        self,
        cli: Callable[..., Result],
        trace: Path,
        analysis: FakeAnalysis,
        text: str,
        meant: tuple[int | None, int | None],
    ) -> None:
        assert cli("analyze", trace, "-q", "-o", "x.json", "--iterations", text).code == 0
        assert analysis.settings == Settings(iterations=meant)


class TestSavedReport:
    """A saved report instead of a trace is drawn again."""

    @pytest.fixture
    def saved(self, folder: Path, analysis: FakeAnalysis) -> object:
        path = folder / "train.nsysdiag.json"
        path.write_bytes(to_json(samples.one_device()))
        yield path.relative_to(folder)
        assert analysis.calls == []

    def test_is_drawn_again(self, cli: Callable[..., Result], saved: Path, folder: Path) -> None:
        assert cli("analyze", saved).code == 0
        assert (folder / "train.nsysdiag.html").exists()

    def test_round_trip(self, cli: Callable[..., Result], saved: Path) -> None:
        assert cli("analyze", saved, "-o", "-", "--format", "json").stdout == saved.read_bytes()

    def test_timeline_can_be_left_out(self, cli: Callable[..., Result], saved: Path) -> None:
        result = cli("analyze", saved, "--no-timeline", "-o", "-", "--format", "json")
        assert "timeline" not in json.loads(result.stdout)

    def test_analysis_options_are_refused(self, cli: Callable[..., Result], saved: Path) -> None:
        result = cli("analyze", saved, "--gaps", "3", "--device", "0")
        assert result.code == 2
        assert "--device, --gaps cannot be used with" in result.stderr

    def test_every_setting_has_its_option(self) -> None:
        without_option = {"communication_patterns", "timeline", "reader", "nsys", "thresholds", "findings"}
        without_option |= {"memory", "triage", "utilization", "baseline"}
        assert set(OPTION_OF_SETTING) == set(Settings.__struct_fields__) - without_option


class TestCommandOfAReport:
    def test_options_that_differ_from_their_defaults(self) -> None:
        settings = Settings(
            nvtx="my step", same_gpu=True, start_ns=1500, gaps=3, disabled=("sync", "io_wait"), reader="sqlite3"
        )
        report = replace(samples.one_device(), settings=settings.changed())
        assert command_of(report) == (
            f"nsysdiag analyze {report.trace.file} --same-gpu --from 1500ns --nvtx 'my step' --gaps 3"
            " --disable sync --disable io_wait"
        )

    def test_of_a_saved_report_options_are_in_the_same_order(self) -> None:
        report = replace(samples.one_device(), settings=Settings(nvtx="step", start_ns=1, end_ns=7).changed())
        assert command_of(from_json(to_json(report), Report)) == command_of(report)

    @pytest.mark.slow
    def test_it_reads_back(self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis) -> None:
        settings = Settings(device="gpu0", full_hash=True, end_ns=7, disabled=("sync",))
        self.reads_back(settings, cli, trace, analysis)

    @pytest.mark.slow
    def test_iterations_read_back(self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis) -> None:
        self.reads_back(Settings(iterations=(-5, None)), cli, trace, analysis)

    @staticmethod
    def reads_back(settings: Settings, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis) -> None:
        report = replace(samples.one_device(), settings=settings.changed())
        words = shlex.split(command_of(report))
        assert cli("analyze", trace, *words[3:]).code == 0
        assert analysis.settings == settings

    @pytest.mark.slow
    @pytest.mark.usefixtures("analysis")
    def test_stands_in_the_report(self, cli: Callable[..., Result], trace: Path) -> None:
        result = cli("analyze", trace, "-o", "-", "--format", "html")
        assert command_of(samples.one_device()).encode() in result.stdout


class TestReferenceStep:
    def test_a_saved_report_takes_it(self, cli: Callable[..., Result], folder: Path) -> None:
        (folder / "saved.json").write_bytes(to_json(samples.one_device()))
        result = cli("analyze", "saved.json", "--reference-step", "4ms", "-o", "x.json", "-o", "x.md")
        assert result.code == 0
        made = json.loads((folder / "x.json").read_bytes())
        assert made["step_reference"]["reference_ns"] == 4_000_000
        assert made["settings"]["reference_step_ns"] == 4_000_000
        assert "without the profiler" in (folder / "x.md").read_text()
        again = cli("analyze", "x.json", "-o", "-", "--format", "json")
        assert json.loads(again.stdout)["step_reference"] == made["step_reference"]

    def test_it_is_a_setting_of_the_analysis(
        self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis
    ) -> None:
        assert cli("analyze", trace, "--reference-step", "182ms").code == 0
        assert analysis.settings.reference_step_ns == 182_000_000

    @pytest.mark.parametrize("text", ["0", "-5ms", "fast", "99999999s"])
    def test_what_is_no_length(
        self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis, text: str
    ) -> None:
        result = cli("analyze", trace, f"--reference-step={text}")
        assert (result.code, result.stdout, analysis.calls) == (2, b"", [])

    def test_without_steps_it_is_refused(self, cli: Callable[..., Result], folder: Path) -> None:
        (folder / "saved.json").write_bytes(to_json(samples.SAMPLES["no_device"]()))
        result = cli("analyze", "saved.json", "--reference-step", "4ms")
        assert (result.code, result.stdout) == (2, b"")
        assert "no whole steps were found" in result.stderr


class TestComment:
    @pytest.mark.usefixtures("analysis")
    def test_markdown_is_a_comment(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        options = ("--comment", "train-8", "-o", "c.md", "--fail-on", "idle_share > 20%")
        for _time in range(2):  # it replaces its own
            assert cli("analyze", trace, *options).code == 1
        text = (folder / "c.md").read_text()
        assert text.splitlines()[1] == "<!-- nsysdiag comment: train-8 -->"
        assert "idle_share on gpu0 is 40%" in text

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("--comment", "a--b", "-o", "c.md"), "is not a key"),
            (("--comment", "a"), "--comment needs a Markdown output"),
        ],
    )
    def test_mistakes(
        self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis, options: tuple[str, ...], told: str
    ) -> None:
        result = cli("analyze", trace, *options)
        assert (result.code, analysis.calls) == (2, [])
        assert told in result.stderr
