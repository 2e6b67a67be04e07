"""The most memory that a program ever held."""

from __future__ import annotations

import subprocess
import sys

_MEASURE = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
print(used.ru_maxrss)
sys.exit(status != 0)
"""


def peak_bytes_of(line: list[str]) -> int:
    """Run a command line and tell its peak. From a small process: the system tells the peak of a child never lower than
    what its parent held. Raises CalledProcessError where it fails."""
    done = subprocess.run([sys.executable, "-c", _MEASURE, *line], stdout=subprocess.PIPE, check=True)
    return int(done.stdout) * 1024
