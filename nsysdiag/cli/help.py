"""How `--help` shows a command: at the width of the terminal, its options in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIDEST = 10_000
"""No help is cut to less than the terminal; where there is none, it takes 80 columns."""
GROUPS = {
    "Recording": "delay duration capture-range keep nsys",
    "What changes": "without finding kernel host async-copies overlap graphs rank-like merge stream workers ahead "
    "batch",
    "What is compared": "before after baseline across-gpus",
    "Runs of a baseline": "runs replace",
    "Accepting a regression": "what reason until",
    "Running the batch": "jobs scheduler resume history run",
    "What is analysed": "device same-gpu from to nvtx iterations step disable no-replay memory-limit full-hash "
    "reference-step",
    "Settings, budgets and costs": "config no-config baselines fail-on warn-on unjudged gpu-hour-cost",
    "Outputs": "output format comment gaps no-timeline details open force quiet",
    "Names replaced": "redact",
    "Help": "debug version help",
}
"""The options of all commands without their `--`, in the order of the groups."""
OTHERS = "Options"
GROUP_OF = {f"--{option}": group for group, options in GROUPS.items() for option in options.split()}


class GroupedCommand(TyperCommand):
    """A command whose options are in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, and then the groups that have options here."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        for title, params in [("Arguments", arguments), *grouped(self.get_params(ctx))]:
            records = [record for each in params if (record := each.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def grouped(params: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The options of a command by their groups, in the order of `GROUPS`; those without a group come last."""
    options = [each for each in params if each.param_type_name == "option"]
    for group in (*GROUPS, OTHERS):
        yield group, [each for each in options if group_of(each) == group]


def group_of(option: Any) -> str:
    """The group of an option, by its long name."""
    return GROUP_OF.get(max(option.opts, key=len), OTHERS)
