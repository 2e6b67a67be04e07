"""The application as a whole: help, version, misspelt words, exit codes and what stays off stdout."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import __version__
from nsysdiag.cli.console import emit
from nsysdiag.messages import TEXT, InputError, OutputError, UsageError
from nsysdiag.signals import SIGNALS, Ended, raise_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import FakeAnalysis, Result

COMMANDS = (
    "analyze",
    "record",
    "try",
    "ranks",
    "whatif",
    "bundle",
    "info",
    "rules",
    "render",
    "demo",
    "completion",
    "manual",
)


def program(*arguments: str, cwd: Path | None = None, **options: object) -> subprocess.CompletedProcess[bytes]:
    """`python -P -m nsysdiag` as a process of its own."""
    command = [sys.executable, "-P", "-m", "nsysdiag", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output="stdout" not in options, check=False, **options)  # type: ignore[call-overload,no-any-return]


class TestHelp:
    def test_bare_command_shows_help_and_succeeds(self, cli: Callable[..., Result]) -> None:
        result = cli()
        assert result.code == 0
        assert all(command in result.stdout.decode() for command in COMMANDS)
        assert result.stderr == ""

    @pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
    def test_every_help_has_an_example(self, cli: Callable[..., Result], command: tuple[str, ...]) -> None:
        result = cli(*command, "--help")
        assert result.code == 0
        assert "Example" in result.stdout.decode()
        assert f"nsysdiag {' '.join(command)}".strip() in result.stdout.decode()

    def test_version(self, cli: Callable[..., Result]) -> None:
        assert cli("--version").stdout.decode().strip() == f"nsysdiag {__version__}"

    def test_version_is_the_package_s(self) -> None:
        pyproject = Path(__file__).parents[2] / "pyproject.toml"
        assert tomllib.loads(pyproject.read_text())["project"]["version"] == __version__

    @pytest.mark.slow
    def test_runs_as_a_module(self) -> None:
        done = program("--version")
        assert (done.returncode, done.stderr) == (0, b"")


class TestATraceInPlaceOfACommand:
    """It is analysed; what is neither a command nor a trace is misspelt."""

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("options", [(), ("--quiet", "-o", "a.json", "--gaps", "3")])
    def test_a_file(
        self, cli: Callable[..., Result], analysis: FakeAnalysis, trace: Path, options: tuple[str, ...]
    ) -> None:
        result = cli(trace, *options)
        short, files = (result.code, result.stdout, result.stderr), sorted(Path().iterdir())
        result = cli("analyze", trace, *options)
        assert short == (result.code, result.stdout, result.stderr)
        assert files == sorted(Path().iterdir())
        assert len(files) == 2
        assert analysis.calls[0] == analysis.calls[1]

    def test_a_folder_of_parquet_files(self, cli: Callable[..., Result], analysis: FakeAnalysis, folder: Path) -> None:
        (folder / "train_pqtdir").mkdir()
        (folder / "train_pqtdir" / "StringIds.parquet").touch()
        assert cli("train_pqtdir", "-q").code == 0
        assert [path for path, _ in analysis.calls] == [Path("train_pqtdir")]

    def test_another_folder_is_none(self, cli: Callable[..., Result], folder: Path) -> None:
        (folder / "analyse").mkdir()
        result = cli("analyse", "x.sqlite")
        assert (result.code, "Did you mean 'analyze'" in result.stderr) == (2, True)

    def test_a_file_called_like_a_command(self, cli: Callable[..., Result], folder: Path) -> None:
        (folder / "rules").write_bytes(b"SQLite format 3\0")
        assert b"data_loading" in cli("rules").stdout

    def test_a_file_that_is_no_trace_is_said_to_be_none(self, cli: Callable[..., Result], folder: Path) -> None:
        (folder / "notes.txt").write_text("nothing of nsys")
        result = cli("notes.txt")
        assert result.code == 3
        assert "notes.txt" in result.stderr

    def test_its_options_are_those_of_analyze(self, cli: Callable[..., Result], trace: Path) -> None:
        result = cli(trace, "--gasp", "3")
        assert (result.code, "see 'nsysdiag analyze --help'" in result.stderr) == (2, True)

    @pytest.mark.parametrize("word", ["x" * 5000, "none.sqlite"])
    def test_what_is_not_there(self, cli: Callable[..., Result], word: str) -> None:
        result = cli(word)
        assert (result.code, result.stderr.startswith("nsysdiag: No such command")) == (2, True)

    def test_memory_that_runs_out(self, cli: Callable[..., Result], analysis: FakeAnalysis, trace: Path) -> None:
        analysis.error = MemoryError()
        assert "--memory-limit" in cli(trace).stderr


class TestWrongUse:
    def test_misspelt_command_is_suggested(self, cli: Callable[..., Result]) -> None:
        result = cli("analyse", "x.sqlite")
        assert result.code == 2
        assert "Did you mean 'analyze'" in result.stderr
        assert "nsysdiag --help" in result.stderr

    def test_command_that_does_not_exist(self, cli: Callable[..., Result]) -> None:
        result = cli("zzz")
        assert result.code == 2
        assert result.stderr.startswith("nsysdiag: No such command 'zzz'")

    def test_misspelt_option_is_suggested(self, cli: Callable[..., Result]) -> None:
        result = cli("analyze", "x.sqlite", "--forse")
        assert result.code == 2
        assert "--force" in result.stderr

    @pytest.mark.parametrize(
        "arguments", [("analyze",), ("analyze", "x", "--gaps", "many"), ("analyze", "x", "--gaps", "-1")]
    )
    def test_usage_errors(self, cli: Callable[..., Result], arguments: tuple[str, ...]) -> None:
        result = cli(*arguments)
        assert result.code == 2
        assert result.stdout == b""
        assert result.stderr.startswith("nsysdiag: ")
        assert "nsysdiag analyze --help" in result.stderr


class TestErrors:
    """What the analysis raises becomes one sentence, a hint and the class's exit code."""

    @pytest.mark.parametrize(("kind", "code"), [(InputError, 3), (UsageError, 2)])
    def test_one_sentence_and_a_hint(
        self,
        cli: Callable[..., Result],
        analysis: FakeAnalysis,
        trace: Path,
        kind: type[InputError],
        code: int,
    ) -> None:
        analysis.error = kind("it is broken", hint="mend it")
        result = cli("analyze", trace)
        assert result.code == code
        assert result.stdout == b""
        assert result.stderr == "nsysdiag: it is broken\n  hint: mend it\n"

    def test_bug_is_one_line_without_traceback(
        self, cli: Callable[..., Result], analysis: FakeAnalysis, trace: Path
    ) -> None:
        analysis.error = TypeError("no way")
        result = cli("analyze", trace)
        assert result.code == 70
        assert len(result.stderr.splitlines()) == 1
        assert f"this is a bug in nsysdiag {__version__}: TypeError: no way" in result.stderr
        assert "--debug" in result.stderr

    @pytest.mark.parametrize("error", [TypeError("no way"), InputError("no way")])
    def test_debug_adds_the_traceback(
        self, cli: Callable[..., Result], analysis: FakeAnalysis, trace: Path, error: Exception
    ) -> None:
        analysis.error = error
        assert "Traceback (most recent call last)" in cli("analyze", trace, "--debug").stderr

    def test_interrupt(self, cli: Callable[..., Result], analysis: FakeAnalysis, trace: Path) -> None:
        analysis.error = KeyboardInterrupt()
        result = cli("analyze", trace)
        assert result.code == 130
        assert result.stderr == "nsysdiag: interrupted\n"

    @pytest.mark.skipif(sys.platform == "win32", reason="ends programs in another way")
    @pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
    def test_a_signal_to_end_is_an_orderly_end(
        self,
        cli: Callable[..., Result],
        trace: Path,
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
        name: str,
        code: int,
    ) -> None:
        number = getattr(signal, name)
        monkeypatch.setattr("nsysdiag.pipeline.analyze", lambda *_: signal.raise_signal(number))
        before = {each: signal.signal(each, signal.SIG_DFL) for each in SIGNALS}  # under nohup one is ignored
        request.addfinalizer(lambda: [signal.signal(each, handler) for each, handler in before.items()])
        monkeypatch.setattr(Ended, "last", None)
        raise_ended()
        result = cli("analyze", trace)
        assert (result.code, result.stderr) == (code, f"nsysdiag: ended by {name}\n")

    def test_a_signal_whose_exception_was_lost(
        self, cli: Callable[..., Result], analysis: FakeAnalysis, trace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As where the import of an extension module clears it, or raises another."""
        monkeypatch.setattr(Ended, "last", Ended(signal.SIGTERM))
        assert (cli("analyze", trace).code, cli("rules").code) == (143, 143)
        analysis.error = ImportError("cannot load module")
        result = cli("analyze", trace)
        assert (result.code, result.stderr) == (143, "nsysdiag: ended by SIGTERM\n")

    def test_control_characters_are_shown_not_sent(
        self, cli: Callable[..., Result], analysis: FakeAnalysis, trace: Path
    ) -> None:
        analysis.error = InputError("bad \x1b[31mred\n\u202eline \udcff")
        line = cli("analyze", trace).stderr
        assert line == "nsysdiag: bad \\x1b[31mred\\n\\u202eline \\udcff\n"


class TestPipes:
    """A reader that goes away is no error; a full disk is."""

    @pytest.mark.slow
    def test_closed_pipe_is_quiet(self) -> None:
        command = [sys.executable, "-P", "-m", "nsysdiag", "--help"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() == 0

    @pytest.mark.slow
    @pytest.mark.parametrize("argument", ["rules", "--help"])
    def test_full_disk(self, argument: str) -> None:
        with open("/dev/full", "wb") as full:  # noqa: PTH123
            done = program(argument, stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 2
        assert done.stderr.startswith(b"nsysdiag: cannot write")
        assert b"No space left" in done.stderr

    def test_closed_standard_output_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", None)
        with pytest.raises(OutputError, match="standard output is closed") as caught:
            emit(b"x", TEXT)
        assert caught.value.hint == "write to a file with -o PATH"
