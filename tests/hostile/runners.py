"""What CI systems execute in the log of a job: their parsers, written again from their sources and manuals."""

from __future__ import annotations

import re

GITHUB = (
    *("error", "warning", "notice", "debug", "group", "endgroup", "echo", "stop-commands", "add-mask", "add-path"),
    *("add-matcher", "remove-matcher", "set-env", "set-output", "save-state"),
)
AZURE_FORMATS = ("section", "command", "error", "warning", "debug", "group", "endgroup")
AZURE_AREAS = ("task", "artifact", "build", "release", "codecoverage", "results", "telemetry")

# Char.IsWhiteSpace of .NET, which String.TrimStart() goes by.
WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
WHITE += "\u202f\u205f\u3000"
# String.StartsWith(string) and IndexOf(string) of .NET compare by culture, which takes no account of these; the length
# that is cut off is that of the prefix all the same.
IGNORED = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]*"
STYLES = re.compile(r"\x1b\[[0-9;]*m")


def commands(log: str) -> set[tuple[str, str]]:
    """Every command in the log as (CI system, line), also where a viewer has removed the colours."""
    lines = {line for text in (log, STYLES.sub("", log)) for line in _lines(text)}
    return {(system, line) for line in lines for system, found in SYSTEMS.items() if found(line)}


def systems(log: str) -> set[str]:
    """The CI systems that find a command in the log."""
    return {system for system, _line in commands(log)}


def _lines(text: str) -> list[str]:
    """Those of ReadLine() in .NET and in Java, and those of tools that take more for line ends."""
    return [*re.split("\r\n|\n|\r", text), *text.splitlines()]


def _by_culture(prefix: str) -> re.Pattern[str]:
    return re.compile(IGNORED + IGNORED.join(map(re.escape, prefix)), re.IGNORECASE)


def _github(line: str) -> bool:
    """ActionCommand.TryParseV2 of actions/runner: `::` after TrimStart(), up to the next `::`. Any word is a command:
    that of `::stop-commands::WORD`, which ends it, is chosen by the workflow."""
    line = line.lstrip(WHITE)
    end = line.find("::", 2)
    return line.startswith("::") and end > 2


def _github_by_culture(line: str) -> bool:
    line = line.lstrip(WHITE)
    if not _by_culture("::").match(line):
        return False
    end = _by_culture("::").search(line, 2)
    return end is not None and line[2 : end.start()].split(" ")[0].lower() in GITHUB


def _github_legacy(line: str) -> bool:
    """ActionCommand.TryParse: `##[command ...]` anywhere, of names that the runner knows, and of the formats of Azure.
    Only the first would be tried, here all are."""
    return any(
        line[found.start() + 3 :].partition("]")[0].partition(" ")[0].lower() in {*GITHUB, *AZURE_FORMATS}
        for found in _by_culture("##[").finditer(line)
        if "]" in line[found.start() :]
    )


def _azure(line: str) -> bool:
    """Command.TryParse of azure-pipelines-agent: `##vso[area.event ...]` anywhere."""
    found = re.search(r"##vso\[([^\]\s]*)[^\]]*\]", line, re.IGNORECASE)
    return found is not None and len([part for part in found[1].split(".") if part]) == 2


def _azure_by_culture(line: str) -> bool:
    return any(
        line[found.start() + 6 :].partition("]")[0].partition(".")[0].lower() in AZURE_AREAS
        for found in _by_culture("##vso[").finditer(line)
    )


SYSTEMS = {
    "github": _github,
    "github by culture": _github_by_culture,
    "github legacy": _github_legacy,
    "azure": _azure,
    "azure by culture": _azure_by_culture,
    # Service messages may stand anywhere in a line.
    "teamcity": lambda line: "##teamcity[" in line.lower(),
    # Gitlab::Regex.logs_section_prefix_regex; what must follow are control characters.
    "gitlab": lambda line: re.search(r"section_(?:start|end):\d+:[a-zA-Z0-9_.-]+", line) is not None,
    "travis": lambda line: re.search(r"travis_(?:fold|time):(?:start|end):", line) is not None,
}
