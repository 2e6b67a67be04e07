"""The README as the package's description: an index shows it without the files of the repository, so that links and
pictures need addresses. They come from pyproject.toml, `[tool.hatch.metadata.hooks.custom]`; while `links` and
`pictures` are empty there, the README stays as it is. `{version}` in them is that of the package.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"(!\[[^\]]*\]\()(?!https?:|#)([^)\s]+)")
LINK = re.compile(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)([^)\s]+)")


def absolute(text: str, links: str, pictures: str) -> str:
    """The text with these addresses in front of relative links and pictures, where they are not empty."""
    for pattern, base in ((PICTURE, pictures), (LINK, links)):
        if base:
            text = pattern.sub(rf"\g<1>{base.rstrip('/')}/\g<2>", text)
    return text


class LongDescription(MetadataHookInterface):
    """What hatchling asks for."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the field `readme`."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        bases = [self.config.get(name, "").format(version=metadata["version"]) for name in ("links", "pictures")]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, *bases)}
