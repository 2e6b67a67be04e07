"""--redact and --redact-key: checked before the work, applied to what is then delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from nsysdiag.ranks.report import RanksReport
    from nsysdiag.report import Report

Document = TypeVar("Document", bound="Report | RanksReport")
STEM = "redacted"
"""What an output is called that would else bear the name of the trace."""


def check_redaction(key: str | None, *, redact: bool) -> None:
    """Raise UsageError for a key without --redact, and for an empty one. Errors never show a key."""
    if key is not None and not redact:
        raise UsageError("--redact-key needs --redact", hint="add --redact, or leave the key out")
    if key == "":
        raise UsageError("--redact-key is empty", hint="give a key that others cannot guess, or leave it out")


def redacted_for(document: Document, key: str | None, *, redact: bool) -> Document:
    """The document as it is delivered. Raises UsageError for one that was redacted before."""
    from nsysdiag.share.redaction import is_redacted, redacted

    if not redact:
        return document
    if is_redacted(document):
        raise UsageError("the report is redacted already", hint="leave --redact out, or use the trace itself")
    return redacted(document, key)
