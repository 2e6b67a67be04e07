"""Write THIRD-PARTY-NOTICES, names, versions and licences of plotly.js and of the libraries inside its bundle, and
templates/assets/vendor/NOTICES, the libraries for pages. Usage, as in scripts/vendor_plotly:
.venv/bin/python scripts/_notices.py BUNDLE MODULES

BUNDLE is the unminified bundle, whose comments name the modules it was made of; MODULES the folder node_modules of an
installed plotly.js in the same version. A library that cannot be found or whose licence has no text known here is an
error, so that no notice is left out.
"""

from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
VENDOR = ROOT / "templates" / "assets" / "vendor"
LINE = "=" * 80
HEAD = """\
Third-party notices
{line}

nsysdiag itself is under the MIT License, see LICENSE. This file is about the third-party software that is copied into
its source tree, its packages and the HTML reports that it writes: plotly.js, and the libraries in plotly.js' bundle.
What pip installs as dependencies of nsysdiag is not part of it and comes with notices of its own.

Written by scripts/vendor_plotly.
"""
MODULE = re.compile(r"^ *// (?:\.\./)*node_modules/((?:@[^/]+/)?[^/]+)/", re.MULTILINE)
LICENCE_FILE = re.compile(r"(licen[cs]e|copying)(\.(md|txt))?", re.IGNORECASE)
README_SECTION = re.compile(r"^#+ licen[cs]e\s+(.*?)(?=^#|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE)
GRANT = "Permission is hereby granted"
TERMS = re.compile(rf"^(?={GRANT}|Redistribution and use|This software is provided)", re.MULTILINE)
HOLDER = re.compile(r"^(?:Copyright|All rights reserved).*", re.MULTILINE)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: .venv/bin/python scripts/_notices.py BUNDLE MODULES")
    bundle, modules = Path(sys.argv[1]), Path(sys.argv[2])
    names = sorted(set(MODULE.findall(bundle.read_text(encoding="utf-8"))))
    if not names:
        sys.exit(f"{bundle} names no modules: is it the minified bundle?")
    libraries = [library(modules / name) for name in names]
    (VENDOR / "NOTICES").write_text(by_terms(libraries), encoding="utf-8")
    notices = [notice(each.title, each.licence, "Part of: plotly.js", each.text) for each in libraries]
    (ROOT / "THIRD-PARTY-NOTICES").write_text("\n".join([HEAD.format(line=LINE), plotly(), *notices]), encoding="utf-8")


class Library(NamedTuple):
    """Name and version, the identifier of the licence, and its text."""

    title: str
    licence: str
    text: str

    def holders_and_terms(self) -> tuple[list[str], str]:
        """The lines of copyright in front of the terms, and the terms."""
        holders, *terms = TERMS.split(self.text, maxsplit=1)
        if not terms:
            sys.exit(f"no known terms are in the licence of {self.title}")
        return HOLDER.findall(holders), terms[0]


def plotly() -> str:
    """The notice of the bundle itself, with the vendored files."""
    facts = dict(line.split(" ", 1) for line in (VENDOR / "VERSION").read_text(encoding="utf-8").splitlines())
    files = ", ".join(f"templates/assets/vendor/{path.name}" for path in sorted(VENDOR.iterdir()))
    text = (VENDOR / "LICENSE").read_text(encoding="utf-8")
    return notice(f"{facts['package']} {facts['version']}", "MIT", f"Files: {files}", text)


def library(folder: Path) -> Library:
    """A library in the bundle."""
    facts = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    return Library(f"{facts['name']} {facts['version']}", facts["license"], tidy(licence_text(folder, facts)))


def by_terms(libraries: list[Library]) -> str:
    """The libraries with their copyrights, grouped by the terms of their licences, for a page that has room for each
    terms once. Terms that differ in case, line breaks or quotes alone are the same."""
    own = Library("plotly.js", "MIT", (VENDOR / "LICENSE").read_text(encoding="utf-8")).holders_and_terms()[1]
    groups: dict[str, list[Library]] = {words(own): []}
    for each in libraries:
        groups.setdefault(words(each.holders_and_terms()[1]), []).append(each)
    first, *others = groups.values()
    parts = ["The bundle contains these libraries, under the terms above:", *map(credit, first)]
    for group in others:
        parts += ["And under the terms that follow:", *map(credit, group), group[0].holders_and_terms()[1]]
    return "\n\n".join(parts) + "\n"


def credit(each: Library) -> str:
    return "\n".join([f"{each.title}, {each.licence}", *each.holders_and_terms()[0]])


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def licence_text(folder: Path, facts: dict[str, str]) -> str:
    """What the package's licence file says, else its README. Some say no more than MIT: for these the standard text."""
    for path in sorted(folder.iterdir()):
        if LICENCE_FILE.fullmatch(path.name):
            return path.read_text(encoding="utf-8")
    readme = next((path for path in folder.iterdir() if path.name.lower() == "readme.md"), None)
    said = README_SECTION.search(readme.read_text(encoding="utf-8")) if readme else None
    if said and GRANT in said[1]:
        return html.unescape(said[1])
    if facts["license"] != "MIT":
        sys.exit(f"{facts['name']} comes without the text of its licence, {facts['license']}")
    author = re.sub(" <.*", "", facts["author"])
    standard = (VENDOR / "LICENSE").read_text(encoding="utf-8").partition(GRANT)
    return f"The MIT License\n\nCopyright (c) {author}\n\n{''.join(standard[1:])}"


def notice(title: str, licence: str, what: str, text: str) -> str:
    """One entry: a line, name and version, licence, where it is, and the licence's text."""
    return "\n".join([LINE, title, f"Licence: {licence}", what, "", tidy(text), ""])


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\t", "    ").strip().splitlines())


if __name__ == "__main__":
    main()
