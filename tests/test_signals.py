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
    @pytest.mark.parametrize("quarter", some(range(1, 5), 2))
    def test_and_again_while_it_tidies_up(self, tmp_path: Path, imports: int, quarter: int) -> None:
        """Another one cuts that short, and may leave a private folder."""
        done = program(tmp_path, *DEMO, number=signal.SIGTERM, at=imports * quarter // 4, send="storm()")
        assert done.returncode == 143
        assert b"Traceback" not in done.stderr

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


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--version",), ("info", "nowhere.sqlite")])
def test_at_the_end_the_exit_code_is_decided(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    more = f"import atexit; atexit.register(send); {MAIN}"
    done = program(tmp_path, *arguments, more=more)
    assert (done.returncode, b"Traceback" in done.stderr) == (0 if arguments == ("--version",) else 3, False)
