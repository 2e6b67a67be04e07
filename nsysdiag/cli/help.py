"""What shells and readers see: completion of words, pages of rules, `--help` in groups, and the manual page. None of it
imports what an analysis needs."""

from __future__ import annotations

import inspect
import os
import sys
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from typer.core import TyperCommand

from nsysdiag import messages as errors
from nsysdiag.cli.console import emit_text
from nsysdiag.messages import JSON, TEXT
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


# Completion in shells: what a word may go on with, without importing what an analysis needs.

PROGRAM = "nsysdiag"
VARIABLE = "_NSYSDIAG_COMPLETE"
"""Set by the scripts, as Typer has it, when they ask the program for words."""
COMPLETION_EXAMPLES = """\b
Examples:
  nsysdiag completion bash
  nsysdiag completion zsh"""


def completion(
    context: typer.Context,
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
    ],
) -> None:
    """Print the script that completes commands, options, causes, formats and suffixes in a shell.

    It belongs into ~/.local/share/bash-completion/completions/nsysdiag for bash, into _nsysdiag in a folder of $fpath
    for zsh, into ~/.config/fish/completions/nsysdiag.fish for fish.
    """
    raise typer.Exit(_answer(context.find_root().command, f"source_{shell}"))


def complete(app: typer.Typer) -> NoReturn:
    """Answer a script of a shell, and exit."""
    from typer.main import get_command

    sys.exit(_answer(get_command(app), os.environ[VARIABLE]))


def _answer(command: Any, asked: str) -> int:
    from typer.completion import get_completion_inspect_parameters, shell_complete

    get_completion_inspect_parameters()  # which has Typer know the shells
    return shell_complete(command, {}, PROGRAM, VARIABLE, asked)


@cache
def known_words() -> dict[str, list[str]]:
    """Causes, rules, formats and suffixes, from a file that a test keeps as they are: the modules import numpy."""
    import json

    return json.loads(files("nsysdiag").joinpath("data", "completion.json").read_text("utf-8"))


def one_of(kind: str) -> Callable[[str], list[str]]:
    """Completes a word to those of one kind."""

    def matching(incomplete: str) -> list[str]:
        return _beginning(known_words()[kind], incomplete)

    return matching


def format_of(names: str) -> Callable[[str], list[str]]:
    """Completes a word to formats, which are given as a help text names them: `html, json or md`."""
    known = names.replace(" or ", ", ").split(", ")
    return lambda incomplete: _beginning(known, incomplete)


def output_path(incomplete: str) -> list[str]:
    """Completes a name to files with the suffixes of formats: `report.h` to `report.html`."""
    suffixes = known_words()["suffixes"]
    stem = incomplete.rpartition(".")[0]
    begun = _beginning([stem + suffix for suffix in suffixes], incomplete) if stem else []
    has_name = incomplete and not incomplete.endswith("/")
    return begun or [incomplete + suffix for suffix in suffixes if has_name]


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


# `nsysdiag rules`: the causes of idle time in order of precedence, the rules of findings, or one of them in full.

RULES_EXAMPLES = """\b
Examples:
  nsysdiag rules
  nsysdiag rules lock_wait
  nsysdiag rules slow_iterations
  nsysdiag rules --format json"""


def rules(
    rule_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One cause or finding in full.", autocompletion=one_of("rules"))
    ] = None,
    format_name: Annotated[
        Literal["text", "md", "json"], typer.Option("--format", metavar="F", help="text, md or json.")
    ] = "text",
    debug: DebugOption = False,
) -> None:
    """List the causes of idle time and the rules of findings, or explain one.

    Causes are checked in this order; each takes only the time that earlier ones left."""
    from nsysdiag.cli.rule_pages import PRINTED, page_of

    every, one = PRINTED[format_name]
    emit_text(every() if rule_id is None else one(page_of(rule_id)), JSON if format_name == "json" else TEXT)


# How `--help` shows a command: at the width of the terminal, its options in groups.

# `nsysdiag manual`: the manual page, made of what `--help` shows.

WIDEST = 10_000
"""No help is cut to less than the terminal; if there is none, it takes 80 columns."""
GROUPS = {
    "Recording": "delay duration capture-range keep nsys",
    "The trial": "state anew",
    "What changes": "without finding kernel host async-copies overlap graphs rank-like merge stream workers ahead "
    "batch",
    "What is compared": "before after baseline if-no-baseline across-gpus",
    "The answer": "root json schema limit",
    "Runs of a baseline": "runs replace",
    "Accepting a regression": "what reason until",
    "Running the batch": "jobs scheduler resume history run",
    "What is analyzed": "trace device same-gpu from to nvtx phase iterations step disable no-replay memory-limit "
    "full-hash reference-step flops-per-step",
    "Settings, budgets and costs": "config no-config baselines fail-on warn-on unjudged gpu-hour-cost",
    "Outputs": "output format comment report-url annotate-findings gaps no-timeline details open force quiet",
    "Names replaced": "redact",
    "Help": "debug version help",
}
"""The options of all commands without their `--`, in the order of the groups."""
OTHERS = "Options"
GROUP_OF = {f"--{option}": group for group, options in GROUPS.items() for option in options.split()}
ORDER = {option: place for place, option in enumerate(GROUP_OF)}


def plain(params: list[Any]) -> list[Any]:
    """The parameters of a command, which take texts and defaults as they are: Typer would import Pydantic for them,
    which takes longer than Typer itself. The callback of an option is not called for its default. What a version of
    Typer does not have is left as it is."""
    for each in params:
        if hasattr(each, "process_value") and hasattr(each, "type_descriptor"):
            each.__dict__.setdefault("process_value", partial(_taken, each, each.process_value))
    return params


def _taken(param: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """The value of a parameter; `process` makes those that are neither texts nor defaults."""
    several = param.multiple or param.nargs < 0
    if value == param.default and not param.required:
        return () if several and value is None else value
    if value and param.type_descriptor.annotation in (str, list[str]):
        return [*value] if several else value
    return process(context, value)


class GroupedCommand(TyperCommand):
    """A command whose options are in groups."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As for any command, but plain."""
        return plain(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, and then the groups that have options here."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        for title, params in [("Arguments", arguments), *grouped(self.get_params(ctx))]:
            records = [record for each in params if (record := each.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def grouped(params: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The options of a command by their groups, both in the order of `GROUPS`; those without a group come last."""
    options = [each for each in params if each.param_type_name == "option"]
    options.sort(key=lambda each: ORDER.get(_name_of(each), len(ORDER)))
    for group in (*GROUPS, OTHERS):
        yield group, [each for each in options if group_of(each) == group]


def group_of(option: Any) -> str:
    """The group of an option, by its long name."""
    return GROUP_OF.get(_name_of(option), OTHERS)


def _name_of(option: Any) -> str:
    return str(max(option.opts, key=len))


EPILOG = """\b
Examples:
  nsysdiag manual"""

OTHER_CODES = {0: "Success; all budgets are kept.", 1: "A budget of --fail-on is broken.", 70: "A bug in nsysdiag."}
SIGNALS = "128 + N"


def manual(context: typer.Context) -> None:
    """Print the manual page, for man: as share/man/man1/nsysdiag.1 it comes with the package."""
    emit_text(manual_page(context.find_root().command))


def manual_page(program: Any) -> str:
    """The page in roff, of the application and its commands."""
    context = program.make_context("nsysdiag", [], resilient_parsing=True)
    lines = [
        f'.TH NSYSDIAG 1 "" "nsysdiag {__version__}" "User Commands"',
        ".SH NAME",
        r"nsysdiag \- what idle GPUs waited for, from Nsight Systems traces",
        ".SH SYNOPSIS",
        r".B nsysdiag",
        r"\fICOMMAND\fR [\fIARGS\fR]...",
        ".br",
        r".B nsysdiag",
        r"\fITRACE\fR [\fIOPTIONS\fR]...",
        ".SH DESCRIPTION",
        *_text(program.help),
        ".SH COMMANDS",
    ]
    for name, command in program.commands.items():
        lines += _command(name, command, context)
    lines += [".SH EXIT STATUS", *_exit_codes(), ".SH EXAMPLES", *_examples(program.epilog)]
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any, parent: Any) -> Iterator[str]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    usage = " ".join(piece.strip("{}") for piece in command.collect_usage_pieces(context))
    yield f".SS {_escaped(f'nsysdiag {name} {usage}')}"
    yield from _text(command.help)
    for group, options in grouped(command.get_params(context)):
        records = [record for each in options if (record := each.get_help_record(context))]
        if records:
            yield from (".PP", rf"\fB{_escaped(group)}\fR")
        for names, text in records:
            yield from (".TP", rf"\fB{_escaped(names)}\fR", *_text(text))
    yield from _examples(command.epilog)


def _text(text: str | None) -> Iterator[str]:
    """Paragraphs."""
    for number, paragraph in enumerate(inspect.cleandoc(text or "").split("\n\n")):
        if number:
            yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _examples(epilog: str | None) -> Iterator[str]:
    """The lines of an epilog, as they are."""
    yield from (".PP", ".nf")
    yield from (_escaped(line) for line in inspect.cleandoc(epilog or "").splitlines() if line != "\b")
    yield ".fi"


def _exit_codes() -> Iterator[str]:
    said = {code: [text] for code, text in OTHER_CODES.items()}
    for kind in vars(errors).values():
        is_error = isinstance(kind, type) and issubclass(kind, errors.NsysdiagError)
        if is_error and kind.exit_code not in OTHER_CODES:
            said.setdefault(kind.exit_code, []).append(" ".join(inspect.cleandoc(kind.__doc__ or "").split()))
    for code, texts in sorted(said.items()):
        yield from (".TP", rf"\fB{code}\fR", _escaped(" ".join(texts)))
    yield from (".TP", rf"\fB{SIGNALS}\fR", "Ended by signal N; 130 after an interrupt.")


def _escaped(text: str) -> str:
    """Text that roff shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
