"""The report as one HTML file, complete without scripts and network, and safe for any names in the trace.

Control characters are made visible, and the template engine escapes text. A content security policy allows only the
page's own style and scripts, by their hashes.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket, BytecodeCache
from markupsafe import Markup
from msgspec import Struct

from nsysdiag import units
from nsysdiag.document import words
from nsysdiag.document.blocks import Detail, Document, Section, shown
from nsysdiag.document.context import Context
from nsysdiag.document.html import breakable, html_of, width_of
from nsysdiag.document.names import brief, clip, visible
from nsysdiag.document.svg import FILTERS
from nsysdiag.formats import sections
from nsysdiag.formats.format import RenderOptions
from nsysdiag.formats.html.assets import (
    BLANKS,
    asset,
    content_hash,
    page_script,
    page_style,
    templates_folder,
    timeline_script,
)
from nsysdiag.formats.html.terms import explained
from nsysdiag.formats.html.timeline_data import timelines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsysdiag.report import DeviceReport, Report, Tool


# Templates as compiled ahead of time: to compile them takes longer than to fill those of a small page.
#
# `nsysdiag/data/templates.json.gz` holds the Python that jinja2 makes of each template. What is not in it, as a
# template that was changed since, is compiled when it is used. Nothing is written at run time.

FILE = Path(__file__).parents[2] / "data" / "templates.json.gz"


class Compiled(msgspec.Struct, frozen=True):
    """Python source by the checksum that jinja2 makes of a template's source, and which version of jinja2 made it."""

    version: str
    sources: dict[str, str]


class AheadOfTime(BytecodeCache):
    """Gives jinja2 what was compiled ahead, from the same source by the same version."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file of the template, which tracebacks name."""
        return filename or name

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket where its template was compiled ahead."""
        source = sources().get(bucket.checksum)
        if source is not None:
            bucket.code = compile(source, bucket.key, "exec")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep nothing."""


@cache
def sources() -> dict[str, str]:
    """What was compiled ahead; nothing where another version of jinja2 runs."""
    known = msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=Compiled)
    return known.sources if known.version == jinja2.__version__ else {}


GENERATOR = "nsysdiag"
HEAD_BYTES = 4096
_KEPT = re.compile(r"(<(?:pre|script|style)\b.*?</(?:pre|script|style)>)", re.DOTALL)


class PlacedSection(Struct, frozen=True):
    """A section with its place on the page."""

    anchor: str
    section: Section


class PlacedGroup(Struct, frozen=True):
    """Sections that belong together: those of the whole report, or those of one device."""

    anchor: str
    device: DeviceReport | None
    sections: list[PlacedSection]


def render(report: Report, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    context = Context.of(report)
    report, groups = context.report, _groups(context)
    timeline = timeline_script() if timelines(report) else None
    return framed(
        "report.html",
        report.tool,
        page_style(),
        page_script(),
        [timeline.source] if timeline else [],
        report=report,
        options=options,
        groups=groups,
        # The section's own templates see `values`.
        html_of=lambda drawn, level, values: html_of(
            drawn.section.blocks, environment(), level, {**values, "section": drawn}
        ),
        several=len(report.devices) > 1,
        timeline_script=timeline.packed if timeline else "",
    )


def framed(
    template: str, tool: Tool, style: str, script: str, packed: Sequence[str] = (), /, **values: object
) -> bytes:
    """A whole page as UTF-8: `template` rendered with `values`, under a policy that allows its style and its scripts,
    including the `packed` ones."""
    theme = asset("theme.js")
    html = (
        environment()
        .get_template(template)
        .render(
            values,
            generator=f"{GENERATOR} {tool.version}",
            policy=policy(style, theme, script, *packed),
            style=Markup(style),  # our own files, guarded by asset()
            theme=Markup(theme),
            script=Markup(script),
        )
    )
    return (explained(squeezed(html)).rstrip() + "\n").encode()


def document(
    found: Document, tool: Tool, settings: Mapping[str, object], options: RenderOptions, *sheets: str
) -> bytes:
    """A page of sections that are blocks alone, with further style sheets by their names, as UTF-8."""
    return framed(
        "document.html",
        tool,
        page_style(*sheets),
        page_script(),
        document=found,
        sections=[section for section in found.sections if shown(section.blocks, Detail.PAGE)],
        html_of=lambda blocks, level: html_of(blocks, environment(), level, {}),
        tool=tool,
        settings=settings,
        options=options,
    )


def squeezed(html: str) -> str:
    """The page without indentation and empty lines: a tenth of a large one. Where blanks count they stay."""
    parts = _KEPT.split(html)
    return "".join(part if at % 2 else BLANKS.sub("\n", part) for at, part in enumerate(parts))


def policy(style: str, *scripts: str) -> str:
    """A content security policy that allows this style and these scripts, images from data, and nothing else."""
    hashes = " ".join(content_hash(script) for script in scripts)
    return (
        f"default-src 'none'; style-src {content_hash(style)}; script-src {hashes}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    """The template engine: everything escaped, control characters made visible, unknown names an error."""
    made = Environment(
        loader=FileSystemLoader(templates_folder()),
        bytecode_cache=AheadOfTime(),
        autoescape=True,
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    made.filters |= {
        "ns": units.format_ns,
        "signed": units.format_signed_ns,
        "exact": units.format_exact_ns,
        "share": units.format_share,
        "count": units.format_count,
        "size": units.format_bytes,
        "instant": words.instant,
        "clip": clip,
        "brief": brief,
        "breakable": breakable,
        "width": width_of,
        **FILTERS,
    }
    return made


def _groups(context: Context) -> list[PlacedGroup]:
    """Anchors are numbered where there are several devices; their keys come from the trace and stay out of them."""
    several, found, devices = len(context.report.devices) > 1, [], count()
    for group in sections.groups(context):
        anchor = f"gpu-{next(devices)}" if group.device else ""
        prefix = f"{anchor}-" if several and group.device else ""
        drawn = [PlacedSection(prefix + each.id, each) for each in group.sections if shown(each.blocks, Detail.PAGE)]
        found.append(PlacedGroup(anchor, group.device, drawn))
    return found


def is_ours(data: bytes) -> bool:
    """Does the head of the page name us as its generator?"""
    return f'<meta name="generator" content="{GENERATOR} '.encode() in data[:HEAD_BYTES]
