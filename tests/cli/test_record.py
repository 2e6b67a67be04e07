"""`nsysdiag record`: a program runs under nsys as it does alone, and its report is kept and analyzed."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.capture.run import Host
from nsysdiag.messages import InputError
from tests.builder import TraceBuilder
from tests.capture.stand_in import REPORT, StandIn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import FakeAnalysis, Result

    Record = Callable[..., Result]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nsys records programs of Linux")

ROOT = Path(__file__).parents[2]
SH = ("--", "sh", "-c")


@pytest.fixture
def nsys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A stand-in on the PATH, an empty temporary folder and a current one that is empty, too."""
    stand_in = StandIn(folder / "bin")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (folder / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    monkeypatch.setattr("nsysdiag.capture.run.this_host", lambda: Host(2, root=False))
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    return stand_in


@pytest.fixture
def record(cli: Callable[..., Result], nsys: StandIn, folder: Path) -> Record:
    """Run `nsysdiag record`; afterwards nothing is in the temporary folder, nor half done in the current one."""

    def run(*arguments: object) -> Result:
        result = cli("record", *arguments)
        assert list((folder / "tmp").iterdir()) == []
        assert [path for path in Path().iterdir() if path.name.startswith(".")] == []
        return result

    return run


def here() -> set[str]:
    return {path.name for path in Path().iterdir()}


@pytest.mark.usefixtures("analysis")
class TestOutputs:
    @pytest.mark.slow
    def test_a_report_and_a_page(self, record: Record, analysis: FakeAnalysis) -> None:
        result = record("--", "sh", "train.py")
        assert result.code == 6  # sh finds no train.py
        assert here() == {"train.nsys-rep", "train.nsysdiag.html"}
        assert Path("train.nsys-rep").read_text() == REPORT
        assert [path for path, _ in analysis.calls] == [Path("train.nsys-rep")]

    @pytest.mark.slow
    def test_what_goes_to_which_stream(self, record: Record, nsys: StandIn) -> None:
        """The program's output is its own, the summary comes behind it, and nsys's goes nowhere."""
        result = record(*SH, "echo out; echo err >&2")
        assert result.code == 0
        first, rest = result.stdout.decode().split("\n", 1)
        assert first == "out"
        assert rest.startswith("nsysdiag ")
        assert "says this of its own" not in rest + result.stderr
        assert result.stderr.splitlines() == [
            "nsys 2025.1.1.103 records CUDA, NVTX, OS calls, cuBLAS and cuDNN calls, scheduling, CPU samples, kernels "
            "inside CUDA graphs, GPU memory, callers of CUDA calls and GPU metrics",
            "err",
            "wrote sh.nsys-rep",
            "wrote sh.nsysdiag.html",
        ]
        assert "--sample=process-tree" in nsys.options

    @pytest.mark.slow
    def test_quiet(self, record: Record) -> None:
        result = record("-q", *SH, "echo out; echo err >&2")
        assert (result.stdout, result.stderr) == (b"out\n", "err\n")
        assert here() == {"sh.nsys-rep", "sh.nsysdiag.html"}

    @pytest.mark.slow
    def test_what_is_left_out_is_said(self, record: Record, nsys: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        nsys.says(gpus="")
        monkeypatch.setattr("nsysdiag.capture.run.this_host", lambda: Host(3, root=False))
        lines = record(*SH, ":").stderr.splitlines()
        assert "perf_event_paranoid is 3; 'sudo sysctl kernel.perf_event_paranoid=2' permits it" in lines[1]
        assert lines[2] == "without GPU metrics: nsys finds no GPU here that has them"

    @pytest.mark.thorough
    def test_nothing_is_overwritten(self, record: Record) -> None:
        for number in (1, 2, 3):
            assert record(*SH, ":").code == 0
            assert len(here()) == 2 * number
        assert {"sh-3.nsys-rep", "sh-3.nsysdiag.html"} < here()

    @pytest.mark.slow
    def test_a_rank_beside_this_one_took_the_name(self, record: Record) -> None:
        result = record(*SH, "echo theirs > sh.nsys-rep")
        assert Path("sh.nsys-rep").read_text() == "theirs\n"
        assert here() == {"sh.nsys-rep", "sh-2.nsys-rep", "sh-2.nsysdiag.html"}
        assert "wrote sh-2.nsys-rep" in result.stderr

    @pytest.mark.slow
    def test_force_overwrites(self, record: Record) -> None:
        Path("sh.nsys-rep").write_text("old")
        Path("sh.nsysdiag.html").write_text("not ours")
        assert record("--force", *SH, ":").code == 0
        assert Path("sh.nsys-rep").read_text() == REPORT
        assert len(here()) == 2

    @pytest.mark.slow
    def test_other_names(self, record: Record) -> None:
        assert record("--keep", "a.nsys-rep", "-o", "b.json", "-o", "c.md", *SH, ":").code == 0
        assert here() == {"a.nsys-rep", "b.json", "c.md"}

    @pytest.mark.slow
    def test_of_a_rank(self, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
        assert record(*SH, ":").code == 0
        assert record("--keep", "%q{OMPI_COMM_WORLD_RANK}.nsys-rep", "-o", "%h.json", *SH, ":").code == 0
        names = {"sh.rank3.nsys-rep", "sh.rank3.nsysdiag.html", "3.nsys-rep", f"{socket.gethostname()}.json"}
        assert here() == names

    @pytest.mark.slow
    def test_the_page_is_called_like_the_report(self, record: Record) -> None:
        assert record("--keep", "a.nsys-rep", *SH, ":").code == 0
        assert here() == {"a.nsys-rep", "a.nsysdiag.html"}

    @pytest.mark.slow
    def test_redacted(self, record: Record) -> None:
        assert record("--redact", *SH, ":").code == 0
        assert here() == {"sh.nsys-rep", "redacted.nsysdiag.html"}

    @pytest.mark.slow
    def test_a_budget(self, record: Record) -> None:
        assert record("--fail-on", "idle_ns > 0", *SH, ":").code == 1

    @pytest.mark.slow
    def test_settings(self, record: Record, analysis: FakeAnalysis, nsys: StandIn) -> None:
        Path("my.toml").write_text("gaps = 7\n")
        options = ("--config", "my.toml", "--same-gpu", "--memory-limit", "2GB", "--gpu-hour-cost", "3")
        assert record(*options, *SH, ":").code == 0
        settings = analysis.settings
        assert (settings.gaps, settings.same_gpu, settings.cost.gpu_hour_cost) == (7, True, 3)
        assert settings.nsys == str(nsys.path)
        assert "nsys" not in settings.changed()


@pytest.mark.usefixtures("analysis")
class TestTheProgram:
    @pytest.mark.slow
    def test_its_environment_is_its_own(self, record: Record, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        """Neither what nsys is told nor what this program sets for itself is in it."""
        monkeypatch.setenv("TMPDIR", "/some 'where")
        code = "import json, os; json.dump(dict(os.environ), open('env.json', 'w'))"
        assert record("--", sys.executable, "-c", code).code == 0
        found = json.loads(Path("env.json").read_text())
        differing = {name for name in found | dict(os.environ) if found.get(name) != os.environ.get(name)}
        assert differing <= {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}

    @pytest.mark.slow
    def test_no_temporary_folder_is_named_where_none_was(self, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TMPDIR", raising=False)
        assert record(*SH, 'test -z "${TMPDIR+x}"').code == 0

    @pytest.mark.slow
    def test_its_folder_and_arguments(self, record: Record) -> None:
        result = record("-q", *SH, 'pwd; printf "%s|" "$@"', "x", "a b", "--", "-q", "$HOME 'quoted'", "")
        assert result.stdout.decode() == f"{Path.cwd()}\na b|--|-q|$HOME 'quoted'||"

    @pytest.mark.thorough
    def test_its_input(self, nsys: StandIn) -> None:
        done = started(nsys, "-q", "--", "cat", input=b"piped", stdout=subprocess.PIPE)
        assert (done.returncode, done.stdout) == (0, b"piped")

    @pytest.mark.thorough
    def test_a_closed_input_stays_closed(self, nsys: StandIn) -> None:
        done = started(nsys, "-q", *SH, "exec 2>&1; read x <&0 || echo none", closed=True, stdout=subprocess.PIPE)
        assert done.stdout.splitlines()[-1] == b"none"

    @pytest.mark.thorough
    def test_a_terminal_stays_one(self, nsys: StandIn) -> None:
        ours, theirs = pty.openpty()
        started(
            nsys,
            "-q",
            *SH,
            "test -t 0 && test -t 1 && test -t 2 && touch terminal",
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.close(ours)
        assert Path("terminal").exists()

    @pytest.mark.thorough
    def test_files_that_were_inherited(self, nsys: StandIn) -> None:
        """As MPI hands its ranks theirs; and none of ours."""
        reading, writing = os.pipe()
        temporary = nsys.path.parents[1] / "tmp"
        code = f"import os; os.write({writing}, b'told'); os.system('ls -l /proc/self/fd | grep -c {temporary}')"
        words = ("-q", "--", sys.executable, "-c", code)
        done = started(nsys, *words, pass_fds=(writing,), stdout=subprocess.PIPE)
        os.close(writing)
        assert os.read(reading, 10) == b"told"
        os.close(reading)
        assert done.stdout == b"0\n"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("ends", "said"),
        [("exit 7", "exit code 7"), ("kill -9 $$", "exit code 137 (SIGKILL)"), ("exit 250", "exit code 250")],
    )
    def test_it_fails(self, record: Record, ends: str, said: str) -> None:
        """What there is is analyzed first."""
        result = record("-q", *SH, ends)
        assert result.code == 6
        assert result.stderr == f"nsysdiag: the program failed with {said}\n"
        assert here() == {"sh.nsys-rep", "sh.nsysdiag.html"}

    @pytest.mark.slow
    def test_it_fails_and_so_does_a_budget(self, record: Record) -> None:
        result = record("-q", "--fail-on", "idle_ns > 0", *SH, "exit 7")
        assert (result.code, "fail: " in result.stderr) == (6, True)

    @pytest.mark.slow
    def test_it_fails_and_cannot_be_analyzed(self, record: Record, analysis: FakeAnalysis) -> None:
        analysis.error = InputError("it is broken")
        result = record("-q", *SH, "exit 7")
        assert (result.code, result.stderr.splitlines()[-1]) == (6, "nsysdiag: it is broken")

    @pytest.mark.slow
    def test_it_fails_before_anything_was_recorded(self, record: Record, nsys: StandIn) -> None:
        nsys.says(records=False)
        result = record("-q", "--delay", "60", *SH, "exit 7")
        assert result.code == 6
        assert result.stderr.splitlines()[1:] == [
            "nsysdiag: nothing was recorded: the program ended before --delay was over"
        ]
        assert here() == set()

    @pytest.mark.slow
    def test_it_is_ended_after_its_time(self, record: Record) -> None:
        """nsys ends it, so it has not failed."""
        assert record("-q", "--duration", "1", "--", "sleep", "60").code == 0

    @pytest.mark.thorough
    def test_it_answers_that_in_its_own_way(self, record: Record) -> None:
        result = record("-q", "--duration", "1", *SH, "trap 'exit 3' TERM; sleep 60 & wait")
        assert result.code == 6
        assert "nsys sends it SIGTERM" in result.stderr


class TestNsysDies:
    """Nothing that it had begun stays behind: no orphan of the program, and no agent in a session of its own."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("number", "said"),
        [
            (signal.SIGKILL, "was ended by signal 9 (SIGKILL)"),
            (signal.SIGSEGV, "was ended by signal 11 (SIGSEGV)"),
            (0, "exited with code 0"),
        ],
    )
    def test_all_ends_with_it(
        self, record: Record, nsys: StandIn, monkeypatch: pytest.MonkeyPatch, number: int, said: str
    ) -> None:
        monkeypatch.setattr("nsysdiag.capture.run.PATIENCE_S", 0.5)
        nsys.says(dies=number)
        result = record("-q", *SH, "sleep 77 & echo $! > child; echo $$ > running; sleep 77; echo never")
        assert result.code == 3
        ended = "made no report; the program and the other processes of nsys were ended"
        assert f"nsysdiag: nsys 2025.1.1.103 {said} and {ended}" in result.stderr.splitlines()
        assert here() == {"agent", "child", "running"}
        assert [name for name in here() if words_of(int(Path(name).read_text()))] == []

    @pytest.mark.slow
    def test_the_orphans_of_a_program_live_on(self, record: Record, analysis: FakeAnalysis) -> None:
        """Where nsys made its report, as it does without nsysdiag."""
        assert record("-q", *SH, "sleep 77 & echo $! > orphan").code == 0
        assert len(analysis.calls) == 1
        orphan = int(Path("orphan").read_text())
        assert words_of(orphan) == ["sleep", "77"]
        os.kill(orphan, signal.SIGKILL)


def words_of(process: int) -> list[str]:
    """The command line of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


class TestWrongUse:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--", "none-such"), "there is no program 'none-such'"),
            (("--keep", "a.sqlite", *SH, ":"), "does not end with .nsys-rep"),
            (("--keep", "gone/a.nsys-rep", *SH, ":"), "the folder gone does not exist"),
            (("--keep", "taken.nsys-rep", *SH, ":"), "taken.nsys-rep exists"),
            (("--nsys", "none-such", *SH, ":"), "--nsys: there is no program 'none-such'"),
            (("--nsys", "/bin/true", *SH, ":"), "'/bin/true' is not Nsight Systems"),
            (("-o", "-", "--format", "json", *SH, ":"), "standard output is the program's"),
            (("-o", "a.docx", *SH, ":"), "a.docx"),
            (("--config", "x", "--no-config", *SH, ":"), "exclude each other"),
            (("--fail-on", "nonsense", *SH, ":"), "nonsense"),
            (("--delay", "-1", *SH, ":"), "--delay"),
            (("--capture-range", "step*", *SH, ":"), "nsys has no patterns such as 'step*'"),
            (("--keep", "%q{NONE_SUCH}.nsys-rep", *SH, ":"), "the environment has no NONE_SUCH"),
            (("-o", "%q{NONE_SUCH}.html", *SH, ":"), "the environment has no NONE_SUCH"),
            ((), "Missing argument"),
            (("--open", "-o", "a.json", *SH, ":"), "--open needs an HTML report"),
        ],
    )
    def test_before_anything_runs(self, record: Record, nsys: StandIn, arguments: tuple[str, ...], said: str) -> None:
        Path("taken.nsys-rep").write_text("a capture")
        result = record(*arguments)
        assert (result.code, nsys.runs) == (2, [])
        assert said in result.stderr
        assert Path("taken.nsys-rep").read_text() == "a capture"

    def test_another_system(self, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        result = cli("record", *SH, ":")
        assert (result.code, "on Linux only" in result.stderr) == (2, True)

    def test_no_nsys(self, cli: Callable[..., Result], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "solver").symlink_to("/bin/true")
        monkeypatch.setenv("PATH", str(folder / "bin"))
        result = cli("record", "--", "solver")
        assert result.code == 2
        assert "install Nsight Systems" in result.stderr

    def test_where_two_may_be_meant(self, record: Record, nsys: StandIn) -> None:
        result = record("sh", "-c", ":", "-o", "x.html")
        assert (result.code, nsys.runs) == (2, [])
        assert "'-o' after the program may be meant for nsysdiag or for 'sh'" in result.stderr
        assert "write -- before the program" in result.stderr

    @pytest.mark.slow
    @pytest.mark.usefixtures("analysis")
    @pytest.mark.parametrize("arguments", [("sh", "-c", ":", "--lr"), ("-q", "sh", "-c", ":"), (*SH, ":", "-o", "x")])
    def test_where_one_is_meant(self, record: Record, nsys: StandIn, arguments: tuple[str, ...]) -> None:
        assert record(*arguments).code == 0
        (run,) = nsys.runs
        assert run["program"][-2:] == [*arguments[-2:]]


class TestNsysFails:
    @pytest.mark.slow
    @pytest.mark.usefixtures("analysis")
    def test_an_option_that_it_refuses_is_left_out(self, record: Record, nsys: StandIn) -> None:
        nsys.says(refuses="--gpu-metrics-devices")
        result = record(*SH, "echo once >> ran")
        assert result.code == 0
        assert Path("ran").read_text() == "once\n"
        assert "nsys refuses that: unrecognised option --gpu-metrics-devices; it records less" in result.stderr
        assert [len(run["options"]) for run in nsys.runs] == [8, 4]

    @pytest.mark.slow
    def test_it_does_not_start_the_program(self, record: Record, nsys: StandIn) -> None:
        nsys.says(refuses="--trace")
        result = record("-q", *SH, "touch ran")
        assert result.code == 2
        assert result.stderr == (
            "nsysdiag: nsys 2025.1.1.103 could not start the program (exit code 1)\n    unrecognised option --trace\n"
        )
        assert here() == set()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ((), "nsys 2025.1.1.103 made no report (exit code 0)"),
            (("--delay", "5"), "nothing was recorded: the program ended before --delay was over"),
            (("--capture-range", "step"), "nothing was recorded: the range 'step' never began"),
            (("--capture-range", "cudaProfilerApi"), "nothing was recorded: cudaProfilerStart was never called"),
        ],
    )
    def test_it_makes_no_report(self, record: Record, nsys: StandIn, options: tuple[str, ...], said: str) -> None:
        """A process that ends a little later by itself is no sign that nsys died: its agent is one."""
        nsys.says(records=False)
        result = record("-q", *options, *SH, "sleep 0.3 &")
        assert (result.code, here()) == (3, set())
        assert result.stderr.startswith(f"nsysdiag: {said}\n")

    @pytest.mark.slow
    def test_it_has_no_importer(self, record: Record, nsys: StandIn) -> None:
        """The stream is all that there is of the run."""
        nsys.says(stream=True)
        result = record("-q", *SH, ":")
        assert (result.code, here()) == (3, {"sh.qdstrm"})
        assert "QdstrmImporter -i sh.qdstrm" in result.stderr

    @pytest.mark.slow
    def test_its_export_fails(self, record: Record, nsys: StandIn) -> None:
        result = record("-q", *SH, ":")
        assert (result.code, here()) == (3, {"sh.nsys-rep"})
        assert "could not export 'sh.nsys-rep' (exit code 9)" in result.stderr


def started(
    nsys: StandIn, *arguments: str, closed: bool = False, **options: object
) -> subprocess.CompletedProcess[bytes]:
    """`nsysdiag record` in a process of its own, which exports an empty trace."""
    return subprocess.run(command(nsys, *arguments, closed=closed), env=environment(nsys), check=False, **options)  # type: ignore[call-overload,no-any-return]


def command(nsys: StandIn, *arguments: str, closed: bool = False) -> list[str]:
    export = nsys.path.with_name("export.sqlite")
    nsys.says(export=str(TraceBuilder().write(export)))
    words = [sys.executable, "-P", "-m", "nsysdiag", "record", *arguments]
    return ["sh", "-c", 'exec "$@" <&-', "sh", *words] if closed else words


def environment(nsys: StandIn) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(nsys.path.parents[1] / "tmp")}


WAITS = """
import signal, sys, time
def stop(number, frame):
    print("stopped by", number, flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(60)
"""


def heed_signals() -> None:
    """Where tests run under nohup or in the background of a script, programs inherit that these are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.slow
class TestSignals:
    """They reach the program, nsys gets each once, and what was recorded until then is analyzed."""

    @pytest.mark.sampled(normal=6)
    @pytest.mark.parametrize(
        ("number", "seen", "said"),
        [
            (signal.SIGINT, signal.SIGINT, "interrupted"),
            (signal.SIGTERM, signal.SIGTERM, "ended by SIGTERM"),
            (signal.SIGHUP, signal.SIGTERM, "ended by SIGHUP"),  # nsys has no answer to that one
        ],
    )
    @pytest.mark.parametrize("group", [False, True])
    def test_one(self, nsys: StandIn, number: signal.Signals, seen: signal.Signals, said: str, group: bool) -> None:
        """To this process alone, or as from a terminal to all of its group."""
        words = command(nsys, "-q", "--keep", "a.nsys-rep", "--", sys.executable, "-c", WAITS)
        with subprocess.Popen(
            words,
            env=environment(nsys),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=heed_signals,  # noqa: PLW1509
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            (os.killpg if group else os.kill)(process.pid, number)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert out.decode() == f"stopped by {int(seen)}\n"
        assert err.decode() == f"nsysdiag: {said}; the capture up to then is analyzed\n"
        assert here() == {"a.nsys-rep", "a.nsysdiag.html"}
        assert list((nsys.path.parents[1] / "tmp").iterdir()) == []

    @pytest.mark.thorough
    def test_again_where_the_program_does_not_end(self, nsys: StandIn) -> None:
        """The second one is nsys's, which gives up; the third ends nsys."""
        stubborn = (
            "import signal, time\nfor number in (2, 15): signal.signal(number, lambda *_: print('no', flush=True))\n"
        )
        code = f"{stubborn}\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
        words = command(nsys, "-q", "--", sys.executable, "-c", code)
        with subprocess.Popen(
            words,
            env=environment(nsys),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            preexec_fn=heed_signals,  # noqa: PLW1509
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            for _ in range(2):
                answered: list[object] = []
                while not answered:  # one that comes while the one before is handled is lost, as everywhere
                    process.send_signal(signal.SIGINT)
                    answered, _, _ = select.select([process.stdout], [], [], 5)
                assert process.stdout.readline() == b"no\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert here() == set()
            for line in Path("/proc").glob("[0-9]*/cmdline"):  # it was left alone
                with_it = line.read_bytes() if line.exists() else b""
                if stubborn.encode() in with_it and b"nsysdiag" not in with_it:
                    os.kill(int(line.parent.name), signal.SIGKILL)


@pytest.mark.nsys
@pytest.mark.slow
class TestTheRealNsys:
    """Without a GPU: a program of Python has neither CUDA rows nor NVTX."""

    WORK = "import time\nprint('worked')\nend = time.time() + 1\nwhile time.time() < end: time.sleep(0.01)"

    def run(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-P", "-m", "nsysdiag", "record", "--nsys", os.environ["NSYSDIAG_NSYS"], *arguments]
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            words,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(Path.cwd() / "tmp")},
            capture_output=True,
            check=False,
            **options,
        )

    @pytest.fixture(autouse=True)
    def _here(self, folder: Path) -> None:
        (folder / "tmp").mkdir()

    @pytest.mark.thorough
    def test_a_program_without_a_gpu(self, folder: Path) -> None:
        (folder / "work.py").write_text(self.WORK)
        done = self.run("-o", "work.json", "--", sys.executable, "work.py")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(b"worked\nnsysdiag ")
        assert re.match(rb"nsys [\d.]+ records CUDA, NVTX, OS calls", done.stderr)
        assert here() == {"tmp", "work.py", "work.nsys-rep", "work.json"}
        assert list((folder / "tmp").iterdir()) == []
        report = json.loads((folder / "work.json").read_bytes())
        assert (report["devices"], report["trace"]["file"]) == ([], "work.nsys-rep")
        held = {each["id"] for each in report["trace"]["capabilities"] if each["available"]}
        assert "os-runtime" in held
        assert report["diagnosis"]["headline"].startswith("No GPU activity was recorded")

    @pytest.mark.thorough
    def test_a_program_that_fails(self) -> None:
        done = self.run("-q", *SH, "exit 7")
        assert (done.returncode, done.stderr) == (6, b"nsysdiag: the program failed with exit code 7\n")
        assert {"sh.nsys-rep", "sh.nsysdiag.html"} < here()

    @pytest.mark.thorough
    def test_interrupted(self, folder: Path) -> None:
        words = [sys.executable, "-P", "-m", "nsysdiag", "record", "--nsys", os.environ["NSYSDIAG_NSYS"], "-q"]
        code = "import time\nprint('ready', flush=True)\ntime.sleep(60)"
        with subprocess.Popen(
            [*words, "--", sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=heed_signals,  # noqa: PLW1509
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.5)  # nsys is to see it run
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=120)
        assert process.returncode == 130
        assert b"nsysdiag: interrupted; the capture up to then is analyzed\n" in err
        assert len(here()) == 3
        assert list((folder / "tmp").iterdir()) == []
