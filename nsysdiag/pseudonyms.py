"""Pseudonyms in a trace whose names were replaced: those of the redacted report, with a mark in them.

```
report              slice                          what it is
kernel 7<1>.2       kernel·7<1>.2                  the second instance of the first variant of a template
range 3 #12         range·3 #12                    `step 12` of all ranges `step #`
thread 4            thread·4·data_loader           a thread that was named like a data loader's worker
```

Numbers in them count names, not instances. Code that removes counters from names must keep those of pseudonyms, which
it recognizes by the mark. No program's own name contains the mark.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "·"
_LABEL = rf"(?:(?:kernel|nccl){MARK})?(?:kernel|range|symbol|name|(?:nccl|rccl|nvshmem){MARK}[A-Za-z]+)"
_PSEUDONYM = re.compile(
    rf"(\[?(?:torch::|std::|Py_|gc_)?{_LABEL}{MARK}[0-9]+(?:<[0-9]+>)?)(?:\.[0-9]+)?((?:{MARK}[a-z_]+)?\]?)"
    r"(?: #[\d.]+)?"
)


def pseudonym(name: str) -> str | None:
    """The pseudonym in a name, without the part that distinguishes instances; None for any other name."""
    found = _PSEUDONYM.fullmatch(name) if MARK in name else None
    return None if found is None else found[1] + found[2]


# A temporary folder for files of this process alone.

PREFIX = "nsysdiag-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """An empty folder (mode 0700) for as long as the context lasts. Raises OSError where it cannot be made."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
