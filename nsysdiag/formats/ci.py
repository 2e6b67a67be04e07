"""One report in the formats of CI systems: as a batch of one trace."""

from __future__ import annotations

from nsysdiag.formats.batch import gitlab, junit, sarif
from nsysdiag.formats.batch.entries import batch_of_one
from nsysdiag.formats.format import Format
from nsysdiag.workflow_commands import JSON, MARKUP

JUNIT = Format(
    "junit",
    ".junit.xml",
    "JUnit XML, one test case a budget",
    lambda report, options: junit.render(batch_of_one(report, options)),
    junit.is_ours,
    MARKUP,
)
SARIF = Format(
    "sarif",
    ".sarif",
    "SARIF 2.1.0 for code scanning",
    lambda report, options: sarif.render(batch_of_one(report, options), report.causes),
    sarif.is_ours,
    JSON,
)
GITLAB = Format(
    "gitlab",
    ".gitlab.json",
    "GitLab code quality report",
    lambda report, options: gitlab.render(batch_of_one(report, options)),
    gitlab.is_ours,
    JSON,
)
