"""The base of all records that a report is made of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple, SupportsIndex, TypeVar, cast, overload

import msgspec
from msgspec.structs import replace

from nsysdiag.fields import TextKind, fields_of, leaves
from nsysdiag.messages import UsageError

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for JSON that is not such a record: other keys and types, no UTF-8, endless nesting."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all records: immutable, built by keyword."""


class PackedColumn(NamedTuple):
    """A packed column: `values` numbers that take at most `width` bytes each once unpacked."""

    text: str
    values: int
    width: int


class Packed(Record, frozen=True, dict=True):
    """A record that holds packed columns."""

    def keep_unpacked(self, numbers: object) -> None:
        """Keep the numbers of its columns, which are not saved: the code that packs them has them."""
        self.__dict__["_unpacked"] = numbers

    @property
    def unpacked(self) -> Any:
        """The numbers that were kept; None of a record that was read from a file."""
        return self.__dict__.get("_unpacked")

    def columns(self) -> Iterable[PackedColumn]:
        """Its packed columns, without those that are left empty because they say nothing."""
        raise NotImplementedError


def records(kind: type[R], **columns: Any) -> list[R]:
    """One record for each row of columns, which are named by its fields: arrays (n,), or lists of n values."""
    assert columns.keys() <= set(kind.__struct_fields__), columns.keys()
    values = [each.tolist() if hasattr(each, "tolist") else each for each in columns.values()]
    return [kind(**dict(zip(columns, row, strict=True))) for row in zip(*values, strict=True)]


def to_json(record: Record) -> bytes:
    """As UTF-8 JSON, keys sorted, indented by two, one final newline: same record, same bytes."""
    return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=2) + b"\n"


def value_in(data: bytes, *keys: str, kind: Any = Any) -> Any:
    """The value of this kind below some keys of a JSON object; None if there is none. Nothing else is decoded."""
    try:
        for key in keys:
            data = msgspec.json.decode(data, type=dict[str, msgspec.Raw])[key]
        return msgspec.json.decode(data, type=kind)
    except (*UNREADABLE, KeyError):
        return None


def json_schema(kind: type[Record]) -> bytes:
    """The JSON Schema of such a record once saved; the copies in nsysdiag/data are made from it."""
    schema = _settled(msgspec.json.schema(kind))
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2) + b"\n"


def _settled(schema: Any) -> Any:
    """Null is the last of alternatives, as versions of msgspec differ, and docstrings are as Python 3.13 has them."""
    if isinstance(schema, list):
        return [_settled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    settled: dict[str, Any] = {key: _settled(value) for key, value in schema.items()}
    if isinstance(settled.get("description"), str):
        settled["description"] = cleandoc(settled["description"])
    if "anyOf" in settled:
        settled["anyOf"].sort(key=lambda each: each == {"type": "null"})
    return settled


# Goes through all records of a report and hands each field with text to one function.

Visit = Callable[[TextKind, Record, Any], Any]
"""A function of the kind of text of a field, its record and its value; returns the new value."""
R = TypeVar("R", bound=Record)


def rewritten(record: R, visit: Visit) -> R:
    """The record with every field of text as `visit` makes it, those of the records inside it too, in order."""
    changed = {}
    for name, text, nested in _plan(type(record)):
        value = getattr(record, name)
        new = value if text is None or text is TextKind.OWN or value is None else visit(text, record, value)
        new = _within(new, visit) if nested else new
        if new is not value:
            changed[name] = new
    if not changed:
        return record
    made = replace(record, **changed)
    if isinstance(record, Packed) and isinstance(made, Packed):
        made.keep_unpacked(record.unpacked)
    return made


def _within(value: Any, visit: Visit) -> Any:
    if isinstance(value, Record):
        return rewritten(value, visit)
    if isinstance(value, list):
        return [_within(each, visit) for each in value]
    if isinstance(value, dict):
        return {key: _within(each, visit) for key, each in value.items()}
    return value


@cache
def _plan(record: type[Record]) -> list[tuple[str, TextKind | None, bool]]:
    """The fields that matter: what text each holds, and whether there are records inside."""
    rows = [(name, text_of(record, name), bool(records_in(hint))) for name, hint in fields_of(record).items()]
    return [(name, text, nested) for name, text, nested in rows if text not in (None, TextKind.OWN) or nested]


def text_of(record: type[Record], field: str) -> TextKind | None:
    """The kind of text of a field, outside nested records; None without text. Raises TypeError if markers are missing
    or contradict each other, so that no name escapes redaction."""
    found = {leaf.text for leaf in leaves(fields_of(record)[field]) if leaf.kind in (str, Any, object)}
    if None in found or len(found) > 1:
        raise TypeError(
            f"{record.__name__}.{field}: its type must say what its text holds, see nsysdiag.fields.TextKind"
        )
    return next(iter(found), None)


def records_in(hint: Any) -> set[type[Record]]:
    """The records that a field of this type can hold."""
    return {leaf.kind for leaf in leaves(hint) if isinstance(leaf.kind, type) and issubclass(leaf.kind, Record)}


# Methods of records for users: show, save, and convert to a format.
#
# The layers above implement them. They are imported by name at first use, so that imports run one way and a report can
# be read without them.


class Shown(Record, frozen=True):
    """A record that is shown as one line; its fields are too many to be shown all."""

    def __repr__(self) -> str:
        """What it is, in at most 120 characters that all print."""
        return cast("str", made_of(self, "document.one_line", "one_line"))


class Result(Shown, frozen=True):
    """A record that is a whole result, written as the command line writes it."""

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write it to `path` in the format of its suffix, as -o does; CSV writes one more file for each further table.

        Raises UsageError for a suffix of no format that it has. Raises OutputError for a file that cannot be written,
        or that nsysdiag did not write and that needs `force`. Nothing is written then.
        """
        made_of(self, "formats", "save", path, force=force)

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
        return cast("bytes", made_of(self, "formats", "rendered", format_name)).decode()


def in_a_cell(record: Record) -> str:
    """What a notebook shows of a result or a finding: HTML without scripts, in the colours around it."""
    return cast("str", made_of(record, "formats.notebook", "cell"))


def made_of(first: object, home: str, name: str, *given: Any, **named: Any) -> Any:
    """The result of a public function of a higher layer, whose first argument is a record or a path."""
    return getattr(import_module(f"nsysdiag.{home}"), name)(first, *given, **named)


K = TypeVar("K")


class ByName(list[K]):
    """A list of records that also gives one by its name: `devices["gpu0"]`. Raises UsageError, a ValueError, with the
    names that there are."""

    @overload
    def __getitem__(self, wanted: SupportsIndex | str) -> K: ...
    @overload
    def __getitem__(self, wanted: slice) -> list[K]: ...
    def __getitem__(self, wanted: Any) -> Any:
        """One by its place or name, or some of them."""
        if not isinstance(wanted, str):
            return super().__getitem__(wanted)
        names = [getattr(each, "key", None) or getattr(each, "id", None) for each in self]
        if wanted in names:
            return super().__getitem__(names.index(wanted))
        from difflib import get_close_matches

        near = get_close_matches(wanted, [str(each) for each in names], 5, 0) or ["there is none"]
        raise UsageError(f"nothing is called '{wanted}'", hint=f"near names: {', '.join(near)}")
