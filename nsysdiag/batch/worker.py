"""A worker process of a batch: it does one task after the other, until the other end of its pipe is closed.

```
process  -> Worker   python -P -X utf8 -c "...; main(PIPE, SCRATCH)"     Task, Task, ...
         <-                                                              Outcome, Outcome, ...
```

Not by multiprocessing: its processes begin with the current folder first on `sys.path`, and a batch may be run in a
folder of foreign files. `-P` leaves that folder out.
"""

from __future__ import annotations

import signal
import sys

from nsysdiag.shortage import is_shortage
from nsysdiag.signals import Ended, ignore, raise_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

OUT_OF_MEMORY = 71
"""The exit code of a worker without the memory to import what it needs, or to receive a task or send an outcome."""


def main(pipe: int, scratch: str) -> NoReturn:
    """Serve the pipe with that descriptor (on Windows, handle), with private files in `scratch`, and exit. SIGTERM ends
    it quietly, with 143; SIGINT and SIGHUP are the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise_ended()
    code = 0
    try:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        _serve(pipe, scratch)
    except Ended as ended:
        code = ended.exit_code
    except Exception as error:
        if Ended.last is not None:
            code = Ended.last.exit_code
        elif is_shortage(error):
            code = OUT_OF_MEMORY
        elif not isinstance(error, EOFError | OSError):  # the parent wants no more, or is gone
            raise
    ignore()
    sys.exit(code)


def _serve(pipe: int, scratch: str) -> None:
    import tempfile
    from multiprocessing import connection

    ours = getattr(connection, "PipeConnection" if sys.platform == "win32" else "Connection")(pipe)
    from nsysdiag.arrays.spill import share_one_heap
    from nsysdiag.batch.task import work

    tempfile.tempdir = scratch
    share_one_heap()
    while True:
        ours.send(work(ours.recv()))
