"""Where the program begins: signals are answered before anything is imported that takes time."""

from __future__ import annotations

from nsysdiag.signals import exit_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process, and exit with its code."""
    exit_at_once()
    from nsysdiag.cli.app import main as run

    run()
