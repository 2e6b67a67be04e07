"""Settings from a TOML file, named or found: `nsysdiag.toml`, or `[tool.nsysdiag]` of a pyproject.toml."""

from __future__ import annotations

import json
import math
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct, inspect

from nsysdiag.config.settings import BudgetEntry, Settings
from nsysdiag.messages import UsageError

Table = dict[str, object]
AnyStruct = TypeVar("AnyStruct", bound=msgspec.Struct)

PLAIN = ("gaps", "disabled", "communication_patterns", "same_gpu", "step")
"""The settings, in addition to the structs, that apply to every trace of a project; the others are about one trace or
one run."""
BUDGETS = "budgets"
OWN_FILE, SHARED_FILE = "nsysdiag.toml", "pyproject.toml"
LONGEST_VALUE = 60
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+(\[\d+\])?")


def read_file(path: Path) -> tuple[Settings, list[BudgetEntry]]:
    """The settings of a file, defaults for the rest, and its budgets; `config` is its name.

    Raises UsageError for an unreadable file, an unknown setting or an invalid value, with the file and the key, or with
    line and column.
    """
    table = _own_table(_parsed(path), path)
    known = _fields(Settings)
    structs = {name for name, kind in known.items() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)}
    allowed = {name: kind for name, kind in known.items() if name in PLAIN or name in structs}
    for name in table:
        if name in known and name not in allowed:
            raise UsageError(f"{path}: {name} is not a setting of a file", hint="use it on the command line")
    entries = _budgets(table.pop(BUDGETS, []), path)
    settings = _filled(Settings(), table, {**allowed, BUDGETS: list}, path, ())
    return msgspec.structs.replace(settings, config=path.name), entries


def _budgets(value: object, path: Path) -> list[BudgetEntry]:
    if not isinstance(value, list):
        raise UsageError(f"{path}: {BUDGETS} must be tables", hint=f"begin each of them with [[{BUDGETS}]]")
    entries = []
    for at, each in enumerate(value):
        place = (f"{BUDGETS}[{at}]",)
        entry = _filled(BudgetEntry(), _table(each, path, place), _fields(BudgetEntry), path, place)
        if (entry.fail is None) == (entry.warn is None):
            raise UsageError(
                f"{path}: {place[0]} must have either fail or warn", hint='as in fail = "idle_share > 20%"'
            )
        entries.append(entry)
    return entries


def _parsed(path: Path) -> Table:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"there is no settings file {path}", hint="name a TOML file with --config FILE") from error
    except OSError as error:
        raise UsageError(f"cannot read the settings file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text, as TOML must be (byte {error.start})") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}, {_syntax_error(str(error), text)}", hint="the file must be TOML") from error
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply") from error


def _syntax_error(message: str, text: str) -> str:
    """`line 3, column 7: what is wrong`; the parser reports no numbers for the end of the text."""
    found = _PLACE.search(message)
    line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    if found and found[1]:
        line, column = int(found[1]), int(found[2])
    return f"line {line}, column {column}: {_PLACE.sub('', message)}"


def _own_table(document: Table, path: Path) -> Table:
    """What is ours: the whole file, or `[tool.nsysdiag]` in one that others share."""
    if "tool" not in document and path.name != "pyproject.toml":
        return document
    tools = document.get("tool")
    own = tools.get("nsysdiag") if isinstance(tools, dict) else None
    if not isinstance(own, dict):
        raise UsageError(f"{path} has no table [tool.nsysdiag]", hint="in nsysdiag.toml the tables stand at top level")
    return own


def _fields(kind: type[msgspec.Struct]) -> dict[str, object]:
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _filled(
    struct: AnyStruct, table: Table, allowed: dict[str, object], path: Path, place: tuple[str, ...]
) -> AnyStruct:
    """`struct` with the values of the table, each converted to the type of its field."""
    values: Table = {}
    for name, value in table.items():
        where = (*place, name)
        if name not in allowed:
            nearest = get_close_matches(name, allowed, n=1)
            suggestion = f"; did you mean '{nearest[0]}'?" if nearest else ""
            table_name = f"[{_dotted(place)}]" if place else "the file"
            hint = f"{table_name} may hold: {', '.join(sorted(allowed))}"
            raise UsageError(f"{path}: unknown key {_dotted(where)}{suggestion}", hint=hint)
        default = getattr(struct, name)
        if isinstance(default, msgspec.Struct):
            values[name] = _filled(default, _table(value, path, where), _fields(type(default)), path, where)
        else:
            values[name] = _converted(value, allowed[name], path, where)
    return msgspec.structs.replace(struct, **values)


def _converted(value: object, kind: object, path: Path, place: tuple[str, ...]) -> object:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is dict:
        table = _table(value, path, place)
        return {
            _converted(key, inner[0], path, place): _converted(each, inner[1], path, (*place, key))
            for key, each in table.items()
        }
    if origin is tuple:
        if not isinstance(value, list):
            raise _refused(value, "a list", path, place)
        last = place[-1]
        return tuple(_converted(each, inner[0], path, (*place[:-1], f"{last}[{at}]")) for at, each in enumerate(value))
    try:
        converted: object = msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError):
        raise _refused(value, _wanted(inspect.type_info(kind)), path, place) from None
    if isinstance(converted, float) and not math.isfinite(converted):
        raise _refused(value, _wanted(inspect.type_info(kind)), path, place)
    return converted


def _table(value: object, path: Path, place: tuple[str, ...]) -> Table:
    if not isinstance(value, dict):
        raise _refused(value, "a table", path, place)
    return value


def _refused(value: object, wanted: str, path: Path, place: tuple[str, ...]) -> UsageError:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    if len(shown) > LONGEST_VALUE:
        shown = f"{shown[: LONGEST_VALUE - 1]}…"
    return UsageError(f"{path}: {_dotted(place)} is {shown}, but must be {wanted}")


def _wanted(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_wanted(each) for each in kind.types if not isinstance(each, inspect.NoneType))
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.IntType):
        return f"a whole number{_range(kind)}"
    if isinstance(kind, inspect.FloatType):
        return f"a number{_range(kind)}"
    if isinstance(kind, inspect.StrType):
        most = f" of at most {kind.max_length} characters" if kind.max_length else ""
        return f"text{most}{', not empty' if kind.min_length else ''}"
    return "of another type"


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    most = f"{kind.le:,}" if kind.le is not None else ""
    if kind.gt is not None:
        return f" above {kind.gt:,}" + (f", {most} at most" if most else "")
    if kind.ge is not None:
        return f" from {kind.ge:,}" + (f" to {most}" if most else " on")
    return f", {most} at most" if most else ""


def _dotted(place: tuple[str, ...]) -> str:
    return ".".join(each if _BARE_KEY.fullmatch(each) else json.dumps(each) for each in place)


def find_settings(start: Path) -> Path | None:
    """`nsysdiag.toml`, or else a pyproject.toml with our table, in the nearest folder that has one: from `start`, up to
    the root of its repository. Outside of a repository only `start` itself is looked into: folders above it may be
    those of others."""
    folders = [start, *start.parents]
    root = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    for folder in folders[: root + 1]:
        if (folder / OWN_FILE).is_file():
            return folder / OWN_FILE
        if _is_ours(folder / SHARED_FILE):
            return folder / SHARED_FILE
    return None


def _is_ours(path: Path) -> bool:
    """Does it hold our table? One that cannot be read and says nothing of us is a matter of others."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    try:
        tools = tomllib.loads(text).get("tool") if "nsysdiag" in text else None
    except (tomllib.TOMLDecodeError, RecursionError):
        return "[tool.nsysdiag" in text
    return isinstance(tools, dict) and "nsysdiag" in tools


# What the user says a step is: `--step`, and `step` in a settings file.

MOST_STEPS = 10**9
_HINT = "name an NVTX range, or write kernel=NAME, count=N or every=N"


class StepChoice(Struct, frozen=True):
    """Steps are the ranges named `name` (`nvtx`), or begin at each kernel of that name (`kernel`). Or there are
    `number` equal ones (`count`), or `number` of the steps that were found are one (`every`)."""

    kind: Literal["nvtx", "kernel", "count", "every"]
    name: str = ""
    number: int = 0


def parse_step(text: str) -> StepChoice:
    """The choice that a text makes. Raises UsageError for one that makes none."""
    kind, equals, value = (part.strip() for part in text.partition("="))
    if equals and kind == "kernel":
        return StepChoice("kernel", _not_empty(value, text))
    if equals and kind == "count":
        return StepChoice("count", number=_number(value, text, 2))
    if equals and kind == "every":
        return StepChoice("every", number=_number(value, text, 2))
    return StepChoice("nvtx", _not_empty(text, text))


def _not_empty(name: str, text: str) -> str:
    if not name.strip():
        raise UsageError(f"--step {text} names nothing".replace("  ", " "), hint=_HINT)
    return name


def _number(value: str, text: str, least: int) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < len(str(MOST_STEPS)) and int(value) >= least):
        raise UsageError(f"--step {text} needs a whole number from {least} on", hint=_HINT)
    return int(value)
