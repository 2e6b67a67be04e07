"""SIGINT, SIGTERM and SIGHUP: 130, 143 and 129, one sentence and no traceback, whenever they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.levels import some

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

ROOT = Path(__file__).parent.parent
SENTENCES = {
    signal.SIGINT: b"nsysdiag: interrupted\n",
    signal.SIGTERM: b"nsysdiag: ended by SIGTERM\n",
    signal.SIGHUP: b"nsysdiag: ended by SIGHUP\n",
}
PROGRAM = """
import os, signal, sys, threading, time

class At:
    '''Sends the signal to this process at one of the imports that follow the first instructions of the program.'''
    count, of = 0, 0

    def find_spec(self, name, path=None, target=None):
        self.of += name.startswith(("nsysdiag.cli", "nsysdiag.batch.task"))
        self.count += bool(self.of)
        if self.of and self.count == {at}:
            {send}

def send():
    os.kill(os.getpid(), {number})

def storm():
    '''One signal, and many more while the program tidies up.'''
    def more():
        for _ in range(200):
            time.sleep(0.001)
            send()
    threading.Thread(target=more, daemon=True).start()
    send()

at = At()
sys.meta_path.insert(0, at)
sys.argv = ["nsysdiag", *{arguments!r}]
{more}
"""
MAIN = "from nsysdiag.entry import main; main()"
COUNT = "import atexit; atexit.register(lambda: print(at.count, file=sys.stderr)); " + MAIN
WHILE_TRYING_OUT = """
import tempfile
class System:
    def __getattr__(self, name):
        return getattr(os, name)
    def unlink(self, path):
        send()
        os.unlink(path)
tempfile._os = System()
"""
DEMO = ("demo", "-o", "demo.html", "--quiet", "--force")


def program(
    folder: Path,
    *arguments: str,
    number: int = signal.SIGINT,
    at: int = 0,
    send: str = "send()",
    more: str = MAIN,
    descriptors: tuple[int, ...] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run the program in a process of its own, whose private files are in folder/private."""
    (folder / "private").mkdir(exist_ok=True)
    code = PROGRAM.format(at=at, number=int(number), send=send, arguments=arguments, more=more)
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "private")},
        capture_output=True,
        check=False,
        pass_fds=descriptors,
        preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in SENTENCES],
    )


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many modules the command imports."""
    done = program(tmp_path_factory.mktemp("counted"), *DEMO, more=COUNT)
    assert done.returncode == 0
    return int(done.stderr.split()[-1])


class TestDuringImports:
    """Most of them come before anything is begun, some while the command holds private files."""

    @pytest.mark.sampled(quick=3)
    @pytest.mark.parametrize("number", SENTENCES)
    @pytest.mark.parametrize("send", ["send()", "storm()"])
    def test_of_the_command_line(self, tmp_path: Path, number: signal.Signals, send: str) -> None:
        done = program(tmp_path, "--help", number=number, at=40, send=send)
        assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", SENTENCES[number])

    @pytest.mark.sampled(normal=4)
    @pytest.mark.parametrize("tenth", some(range(1, 11), 3))
    def test_of_a_command(self, tmp_path: Path, imports: int, tenth: int) -> None:
        number = list(SENTENCES)[tenth % 3]
        done = program(tmp_path, *DEMO, number=number, at=imports * tenth // 10)
        assert (done.returncode, done.stderr) == (128 + number, SENTENCES[number])
        assert list((tmp_path / "private").iterdir()) == []

    @pytest.mark.slow
    def test_while_python_tries_out_the_temporary_folder(self, tmp_path: Path) -> None:
        """It writes a file into it, and removes it."""
        done = program(tmp_path, *DEMO, more=f"{WHILE_TRYING_OUT}\n{MAIN}")
        assert (done.returncode, done.stderr) == (130, SENTENCES[signal.SIGINT])
        assert list((tmp_path / "private").iterdir()) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("quarter", some(range(1, 5), 2))
    def test_and_again_while_it_tidies_up(self, tmp_path: Path, imports: int, quarter: int) -> None:
        """The third one ends it at once, and may leave a folder that the next start removes."""
        done = program(tmp_path, *DEMO, number=signal.SIGTERM, at=imports * quarter // 4, send="storm()")
        assert done.returncode == 143
        assert done.stderr in (b"", SENTENCES[signal.SIGTERM])

    @pytest.mark.slow
    @pytest.mark.parametrize("at", [1, 60])
    def test_of_a_worker_of_a_batch(self, tmp_path: Path, at: int) -> None:
        """It ends quietly: the parent says what there is to say."""
        pipe, other = os.pipe()
        more = f"from nsysdiag.batch.worker import main; main({pipe}, '.')"
        try:
            done = program(tmp_path, number=signal.SIGTERM, at=at, more=more, descriptors=(pipe,))
        finally:
            os.close(pipe)
            os.close(other)
        assert (done.returncode, done.stderr) == (143, b"")

    @pytest.mark.slow
    def test_what_is_ignored_stays_ignored(self, tmp_path: Path) -> None:
        more = f"signal.signal(signal.SIGHUP, signal.SIG_IGN); {MAIN}"
        assert program(tmp_path, "--version", number=signal.SIGHUP, at=20, more=more).returncode == 0


class TestAtTheEnd:
    """The exit code is decided, and no signal makes another one of it than its own."""

    @pytest.mark.sampled(normal=5)
    @pytest.mark.parametrize("arguments", [("--version",), ("info", "nowhere.sqlite")])
    @pytest.mark.parametrize("when", ["late", "early", "finalizer"])
    def test_of_the_interpreter(self, tmp_path: Path, arguments: tuple[str, ...], when: str) -> None:
        more = {
            "late": f"import atexit; atexit.register(send); {MAIN}",  # after the program's own exit function
            "early": "from nsysdiag import entry, signals; import atexit\n"
            "begin = entry.exit_at_once\n"
            "entry.exit_at_once = lambda: (begin(), atexit.register(send))\n"
            "entry.main()",
            "finalizer": "class Late:\n"
            "    def __del__(self, kill=os.kill, pid=os.getpid()):\n"
            "        kill(pid, 2)\n"
            f"sys.late = Late()\n{MAIN}",
        }[when]
        done = program(tmp_path, *arguments, more=more)
        decided = 3 if arguments[0] == "info" else 0
        assert done.returncode == (130 if when == "early" else decided)
        assert b"Traceback" not in done.stderr
        assert done.stderr.count(b"\n") <= 3  # the sentence and hint of the command, and that of the signal


RUNNING = """
import os, signal, time
from nsysdiag.signals import Ended, EndingByExceptions, exit_at_once, undisturbed

def send():
    os.kill(os.getpid(), signal.SIGTERM)

def rest():
    for _ in range(500):
        time.sleep(0.01)
    print("it was never raised")

class Finalized:
    def __del__(self):
        send()
        print("never printed")

@undisturbed
def whole():
    send()
    time.sleep(0.05)
    print("done")

def lost():
    try:
        send()
        rest()
    except BaseException:
        pass

def main():
    with EndingByExceptions():
        {command}

exit_at_once()
try:
    main()
except Ended as ended:
    print(ended.sentence)
"""

SWALLOWS = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)
except BaseException:
    raise ImportError("what C code makes of an exception")
print("imported")
"""


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("send(); rest()", "ended by SIGTERM"),
        ("Finalized(); rest()", "ended by SIGTERM"),
        ("whole(); rest()", "done\nended by SIGTERM"),
        ("import swallows; rest()", "imported\nended by SIGTERM"),
        ("lost()", "ended by SIGTERM"),
        ("lost(); raise ValueError", "ended by SIGTERM"),
    ],
)
def test_no_signal_is_lost_while_a_command_runs(tmp_path: Path, command: str, printed: str) -> None:
    (tmp_path / "swallows.py").write_text(SWALLOWS)
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUNNING.format(command=command)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{printed}\n", "")


WHILE_IT_ANSWERS = """
import os, signal
from nsysdiag.signals import exit_at_once
exit_at_once()
write = os.write
def interrupted(descriptor, text):
    os.kill(os.getpid(), signal.SIGTERM)
    return write(descriptor, text)
os.write = interrupted
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_signal_during_the_answer_to_one_says_nothing_more() -> None:
    command = [sys.executable, "-P", "-c", WHILE_IT_ANSWERS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (143, b"nsysdiag: ended by SIGTERM\n")
