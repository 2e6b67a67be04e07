"""Everything that shows a Report: one file a format, chosen by name or by the suffix of a path."""

from __future__ import annotations

from nsysdiag.formats.format import FORMATS, Format, RenderOptions, format_for

__all__ = ["FORMATS", "Format", "RenderOptions", "format_for"]
