"""The nsys program: where it is, which version, and what it says that it can do here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

from nsysdiag.errors import UsageError
from nsysdiag.printable import printable
from nsysdiag.trace.export import nsys_on_path

PATIENCE_S = 60
"""For one answer. nsys 2023.4.4 takes 0.04 s."""
GET = "install Nsight Systems (developer.nvidia.com/nsight-systems), which includes it, or name it with --nsys PROGRAM"
_VERSION = re.compile(r"Nsight Systems version (\d+(?:\.\d+)+)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_TRACE = re.compile(r"^\s*-t, --trace=(.*?)^\s*Select the API", re.DOTALL | re.MULTILINE)
METRICS = ("--gpu-metrics-devices", "--gpu-metrics-device")
"""The option of today, and that of versions until 2024."""


class Nsys(Struct, frozen=True):
    """One installed nsys. `options` are those of `nsys profile`, `traceable` the values of its --trace, empty if
    unknown. `status` is its output on CPU profiling here, `metrics` that on GPU metrics. `exports_blobs`: its export
    contains Python stacks."""

    path: str
    version: str
    options: frozenset[str]
    traceable: frozenset[str]
    status: str
    metrics: str
    exports_blobs: bool

    @property
    def metrics_option(self) -> str | None:
        """The option that requests GPU metrics."""
        return next((option for option in METRICS if option in self.options), None)


def find_nsys(given: str | None) -> str:
    """The path of the program that was named, else of that on the PATH. Raises UsageError where there is none."""
    if given is None:
        found = nsys_on_path()
        if found is None:
            raise UsageError("there is no `nsys` on the PATH to record programs with", hint=GET)
        return found
    program = shutil.which(given)
    if program is None:
        raise UsageError(f"--nsys: there is no program '{printable(given)}'", hint=GET)
    return str(Path(program).absolute())


def probe(path: str, folder: Path) -> Nsys:
    """Run nsys to find its options and version; its files go into `folder`. Raises UsageError if it is not nsys."""

    def said(*arguments: str) -> str:
        return _said([path, *arguments], folder)

    version = _VERSION.search(said("--version"))
    if version is None:
        raise UsageError(f"'{printable(path)}' is not Nsight Systems: it does not say its version", hint=GET)
    text = said("profile", "--help")
    options = frozenset(_OPTION.findall(text))
    values = _TRACE.search(text)
    metrics = next((option for option in METRICS if option in options), None)
    return Nsys(
        path=path,
        version=version[1],
        options=options,
        traceable=frozenset(re.findall(r"'([\w-]+)'", values[1])) if values else frozenset(),
        status=said("status", "--environment"),
        metrics=said("profile", f"{metrics}=help") if metrics else "",
        exports_blobs="--include-blobs" in said("export", "--help"),
    )


def _said(command: list[str], folder: Path) -> str:
    """What a command prints; nothing where it cannot be run or does not end."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
