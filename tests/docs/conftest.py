"""The documentation's site, built once a run."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.shared import Shared

ROOT = Path(__file__).parents[2]
ENVIRONMENT = "source scripts/_env.sh; make_tools_environment docs"


def bash(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", *command], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def site(shared: Shared) -> Path:
    """The folder of its pages. Skips where the packages that build it cannot be installed."""
    folder = shared.folder / "site"
    with (shared.folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other worker waits, and then finds it
        if not (folder / "html").is_dir():
            if bash("-c", ENVIRONMENT).returncode:
                pytest.skip("the packages of scripts/requirements-docs.txt cannot be installed")
            done = bash("scripts/docs", str(folder))
            assert done.returncode == 0, done.stderr
    return folder / "html"
