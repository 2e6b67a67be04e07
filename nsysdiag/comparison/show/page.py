"""Two sides compared as one HTML file, complete without scripts or a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.comparison.show import baseline, job, sections, words
from nsysdiag.document.blocks import Detail, Section, shown
from nsysdiag.document.html import html_of
from nsysdiag.document.kinds import Mark
from nsysdiag.document.view import Causes
from nsysdiag.formats.html.assets import asset, page_script, page_style
from nsysdiag.formats.html.page import environment, framed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from nsysdiag.comparison.facts import Comparison, DeviceComparison
    from nsysdiag.formats.format import RenderOptions


class DrawnSection(Struct, frozen=True):
    """A section with its place in the page."""

    anchor: str
    section: Section


class DrawnDevice(Struct, frozen=True):
    """A device with its verdict and its sections."""

    anchor: str
    device: DeviceComparison
    mark: Mark
    sections: list[DrawnSection]


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The whole page as UTF-8. Raises InputError where a saved comparison is damaged."""
    causes, several = Causes(comparison.causes), len(comparison.devices) > 1
    card, base = job.card(comparison, causes), baseline.section(comparison)
    return framed(
        "compare.html",
        comparison.tool,
        page_style() + asset("compare.css"),
        page_script(),
        comparison=comparison,
        options=options,
        mark=words.outcome_mark(comparison),
        devices=[_device(f"gpu-{at}", device, causes, several) for at, device in enumerate(comparison.devices)],
        job=DrawnSection("job", card) if card is not None else None,
        baseline=DrawnSection("baseline", base) if base is not None else None,
        traces=DrawnSection("traces", sections.traces(comparison)),
        files=(words.files_label(comparison.before), words.files_label(comparison.after)),
        several=several,
        html_of=_html,
    )


def _html(drawn: DrawnSection, level: int, values: Mapping[str, object]) -> Markup:
    return html_of(drawn.section.blocks, environment(), level, {**values, "section": drawn})


def _device(anchor: str, device: DeviceComparison, causes: Causes, several: bool) -> DrawnDevice:
    """Anchors are numbered where there are several devices; their keys come from the trace and stay out of them."""
    found = sections.of_device(device, causes, several=several)
    drawn = [
        DrawnSection(f"{anchor}-{section.id}" if several else section.id, section)
        for section in found
        if shown(section.blocks, Detail.PAGE)
    ]
    return DrawnDevice(anchor, device, words.verdict_mark(device.verdict), drawn)
