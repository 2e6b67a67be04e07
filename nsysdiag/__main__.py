"""`python -P -m nsysdiag`: the same as the command `nsysdiag`.

Without `-P` Python looks for modules in the current folder first, and has imported some before this line runs. From
here on it does not, which is less than `-P` does.
"""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109, pathlib is not imported yet
    del sys.path[0]

from nsysdiag.entry import process

process()
