"""Methods of records for users: show, save, and convert to a format.

The layers above implement them. They are imported by name at first use, so that imports run one way and a report can be
read without them.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, cast

from nsysdiag.record import Record

if TYPE_CHECKING:
    import pandas as pd


class Shown(Record, frozen=True):
    """A record that is shown as one line; its fields are too many to be shown all."""

    def __repr__(self) -> str:
        """What it is, in at most 120 characters that all print."""
        return cast("str", import_module("nsysdiag.document.one_line").one_line(self))


class Result(Shown, frozen=True):
    """A record that is a whole result, written as the command line writes it."""

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write it to `path` in the format of its suffix, as -o does; CSV writes one more file for each further table.

        Raises UsageError for a suffix of no format that it has. Raises OutputError for a file that cannot be written,
        or that nsysdiag did not write and that needs `force`. Nothing is written then.
        """
        import_module("nsysdiag.formats.documents").save(self, path, force=force)

    def to_html(self) -> str:
        """The page that `-o x.html` writes: one file, complete without a network."""
        return self._rendered("html")

    def to_markdown(self) -> str:
        """The Markdown that `-o x.md` writes."""
        return self._rendered("md")

    def to_json(self) -> str:
        """The JSON that `-o x.json` writes, which `load` and the command line read back."""
        return self._rendered("json")

    def _repr_html_(self) -> str:
        """What a notebook shows of it: its first screen."""
        return in_a_cell(self)

    def _rendered(self, format_name: str) -> str:
        data: bytes = import_module("nsysdiag.formats.documents").rendered(self, format_name)
        return data.decode()


def in_a_cell(record: Record) -> str:
    """What a notebook shows of a result or a finding: HTML without scripts, in the colours around it."""
    return cast("str", import_module("nsysdiag.formats.notebook").cell(record))


def asked(record: Record, expression: str, table: str) -> pd.DataFrame:
    """The rows of a table of a report for which an expression holds. pandas is loaded for it."""
    return cast("pd.DataFrame", import_module("nsysdiag.formats.frames").query(record, expression, table))
