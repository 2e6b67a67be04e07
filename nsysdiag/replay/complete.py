"""A prediction with what the report of its trace says: titles of findings, causes, settings, and names in sentences."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from nsysdiag.fields import Text
from nsysdiag.phrases import finished
from nsysdiag.record import Record
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.walk import rewritten


def complete(made: WhatIf, report: Report) -> WhatIf:
    """The prediction as it is saved. Its sentences may hold names that know what they are names of."""
    titles = {finding.id: finding.title for finding in report.findings}
    models = {device.key: device.name for device in report.devices}
    whole = replace(
        made,
        devices=[replace(each, name=models.get(each.key, each.name)) for each in made.devices],
        savings=[replace(each, title=each.title or titles.get(each.finding or "", "")) for each in made.savings],
        causes=report.causes,
        settings=report.settings,
    )
    known = report.phrases.typed() if report.phrases is not None else {}

    def visit(_text: Text, _record: Record, value: Any) -> Any:
        if isinstance(value, list):
            return [known.get(each, each) for each in value]
        return known.get(value, value) if isinstance(value, str) else value

    return finished(rewritten(whole, visit))
