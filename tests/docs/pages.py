"""The pages of the documentation as a reader has them: README.md, CONTRIBUTING.md, and docs/."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [path for path in (README, CONTRIBUTING, ROOT / "SECURITY.md", *sorted(DOCS.glob("*.md"))) if path.exists()]


def name_of(path: Path) -> str:
    """For the ids of tests."""
    return path.relative_to(ROOT).as_posix()


def page(name: str) -> str:
    """The text of a page in docs/."""
    return text(DOCS / name)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def everything() -> str:
    return "\n".join(map(text, PAGES))


def fenced(content: str, language: str) -> list[str]:
    """The contents of the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", content, flags=re.DOTALL | re.MULTILINE)


def without_blocks(content: str) -> str:
    """The prose."""
    return re.sub(r"^```.*?^```$", "", content, flags=re.DOTALL | re.MULTILINE)


def shell_lines(content: str, program: str = "nsysdiag") -> list[str]:
    """The command lines that begin with this word."""
    lines = "".join(fenced(content, "sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith(f"{program} ")]


def section(content: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", content, flags=re.DOTALL | re.MULTILINE)
    assert found, heading
    return found[2]
