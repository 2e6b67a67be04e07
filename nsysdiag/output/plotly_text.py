"""Text from a trace as plotly shows it letter by letter."""

from __future__ import annotations

from nsysdiag.output.names import clip

MAX_NAME = 60
# Plotly takes `<` for markup and `&` for a character by its name, and what is between dollars for a formula.
_ESCAPES = {ord(sign): escape for sign, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("$", "&#36;"))}


def plain(text: str) -> str:
    """`text` made visible, cut where it is long, and escaped."""
    return clip(text, MAX_NAME).translate(_ESCAPES)
