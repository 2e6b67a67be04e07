"""What holds a job of several ranks up: the headline, what to fix first, each rank at a glance, the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.diagnosis.chart import JUDGED_TIME, account_chart, accounts
from nsysdiag.diagnosis.entries import NAMED, account_table
from nsysdiag.diagnosis.show import IN_TICKET, action
from nsysdiag.document.blocks import EVERYWHERE, PAGE, TERMINAL, Block, Limit, Paragraph, Section
from nsysdiag.findings.first import brief_of
from nsysdiag.findings.show import anchors, items_of, left_out, rows_of

if TYPE_CHECKING:
    from nsysdiag.ranks.report import RanksReport

MOST_RANKS = 64
ON_TERMINAL = 8
NOUN = "ranks"
RANK = replace(NAMED, title="Rank", length=60)


def job(report: RanksReport) -> list[Section]:
    """The diagnosis and the findings of the job; nothing for a report without one."""
    found = report.diagnosis
    if found is None:
        return []
    all_of = len(report.judged)
    judged_time = {each.key: [each] for each in report.judged}
    limit = Limit(page=MOST_RANKS, ticket=0, summary=ON_TERMINAL, brief=ON_TERMINAL)
    judged = Section(
        "diagnosis",
        "Diagnosis",
        [
            Paragraph(found.headline, "verdict"),
            *action(found, report.findings),
            Paragraph(JUDGED_TIME, "quiet", PAGE),
            replace(account_chart(accounts(report.judged)), limit=EVERYWHERE),
            *account_table(judged_time, "Ranks in the judged time", limit, RANK, NOUN),
            *account_table(judged_time, "", replace(IN_TICKET, ticket=MOST_RANKS), RANK, NOUN),
        ],
    )
    if not report.findings:
        return [judged]
    items = items_of(report.findings, all_of, NOUN)
    findings: list[Block] = [
        replace(rows_of(brief_of(found, report.findings), all_of, NOUN), limit=TERMINAL),
        *([Paragraph(left, limit=TERMINAL)] if (left := left_out(found, report.findings)) else []),
        replace(items, ids=anchors(report.findings), limit=Limit(summary=0, brief=0)),
    ]
    return [judged, Section("findings", "Findings", findings)]
