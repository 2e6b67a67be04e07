"""A stand-in for nsys, which runs programs and writes reports as nsys does, and says of itself what a test wants."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HELP = """usage: nsys profile [<args>] [application] [<application args>]

\t-c, --capture-range=

\t   Possible values are none, cudaProfilerApi, nvtx, hotkey.

\t--capture-range-end=
\t--cuda-graph-trace=<granularity>[:<launch origin>]
\t--cuda-memory-usage=
\t--cudabacktrace=
\t--gpu-metrics-devices=
\t--kill=
\t--python-backtrace=
\t--python-sampling=
\t-s, --sample=

\t-t, --trace=

\t   Possible values are 'cuda', 'nvtx', 'cublas', 'cublas-verbose', 'mpi', 'osrt', 'cudnn' or 'none'.
\t   Select the API(s) to trace.
"""
STATUS = """CPU Profiling Environment Check
Root privilege: disabled
Linux Kernel Paranoid Level = 2
Linux perf_event_open syscall available: OK
Sampling trigger event available: OK
CPU Profiling Environment (process-tree): OK
CPU Profiling Environment (system-wide): Fail
"""
GPUS = """Possible --gpu-metrics-devices values are:
\t0: NVIDIA H100 PCI[0000:17:00.0]
\tall: Select all supported GPUs
\tnone: Disable GPU Metrics [Default]
"""
REPORT = "NVIDIA Tegra Profiler Report 2023"
SAYS = {
    "version": "NVIDIA Nsight Systems version 2025.1.1.103-251135540420v0",
    "help": HELP,
    "status": STATUS,
    "gpus": GPUS,
    "export help": "--include-blobs=",
    "refuses": None,
    "stream": False,
    "records": True,
    "export": None,
    "dies": None,
}
"""What it answers; an option that it refuses; whether it writes a stream in place of a report, or nothing; the SQLite
file that it exports any report to; a signal that ends it half a second after the program began."""
PROGRAM = """#!{python}
import json, os, pathlib, shutil, signal, subprocess, sys
says = json.loads(pathlib.Path({says!r}).read_text())
first, *arguments = sys.argv[1:]
if first == "--version":
    sys.exit(print(says["version"]))
if first == "status":
    sys.exit(print(says["status"]))
if "--help" in arguments:
    sys.exit(print(says["help" if first == "profile" else "export help"]))
if first == "export":
    sys.exit(shutil.copy(says["export"], arguments[arguments.index("--output") + 1]) and 0 if says["export"] else 9)
if any(each.endswith("=help") for each in arguments):
    sys.exit(print(says["gpus"]))
options = []
while arguments and arguments[0].startswith("--"):
    options.append(arguments.pop(0))
with open({told!r}, "a") as told:
    print(json.dumps({{"options": options, "program": arguments}}), file=told)
if says["refuses"] and any(each.startswith(says["refuses"]) for each in options):
    print("unrecognised option", says["refuses"])
    sys.exit(1)
print("nsys says this of its own", flush=True)
open(os.path.join(os.environ["TMPDIR"], "left-by-nsys"), "w").close()
stopped = []
def stop(number, frame):
    stopped.append(number)
    program.send_signal(number)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, stop)
program = subprocess.Popen(arguments, start_new_session=True, close_fds=False)
if says["dies"] is not None:
    agent = subprocess.Popen(["sh", "-c", "(trap '' TERM; exec sleep 77) & echo $! > agent"], start_new_session=True)
    agent.wait()
    while program.poll() is None and not os.path.exists("running"):
        pass
    os.kill(os.getpid(), says["dies"]) if says["dies"] else sys.exit(0)
if any(each.startswith("--duration") for each in options):
    try:
        program.wait(0.5)
    except subprocess.TimeoutExpired:
        program.terminate()
code = program.wait()
(output,) = [pathlib.Path(each.removeprefix("--output=")) for each in options if each.startswith("--output=")]
if len(stopped) < 2 and says["records"]:
    output.with_suffix(".qdstrm" if says["stream"] else ".nsys-rep").write_text({report!r})
sys.exit(code if code >= 0 else 128 - code)
"""


class StandIn:
    """A program in a folder of its own. `says` changes its answers."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path, self._says, self._told = folder / "nsys", folder / "says.json", folder / "told.json"
        names = {"says": str(self._says), "told": str(self._told), "report": REPORT, "python": f"{sys.executable} -I"}
        self.path.write_text(PROGRAM.format(**names))
        self.path.chmod(0o755)
        self.says()

    def says(self, **answers: object) -> None:
        """From now on, with words joined by _ for those apart."""
        changed = {name.replace("_", " "): answer for name, answer in answers.items()}
        assert changed.keys() <= SAYS.keys()
        self._says.write_text(json.dumps({**SAYS, **changed}))

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The options of each `nsys profile`, and what it was to run."""
        return [json.loads(line) for line in self._told.read_text().splitlines()] if self._told.exists() else []

    @property
    def options(self) -> list[str]:
        """Those of the only run, without where it was to write."""
        (run,) = self.runs
        return [each for each in run["options"] if not each.startswith("--output=")]
