"""Causes that other packages bring: what they say, and where they stand in the order of precedence."""

from __future__ import annotations

import re
from typing import NamedTuple

from nsysdiag import plugins
from nsysdiag.causes.cause import Cause

_ID = re.compile(r"[a-z][a-z0-9_]*")


class AddedCause(NamedTuple):
    """A cause, and the id of the one in front of which it stands: what it claims, that one and those behind do not
    see."""

    cause: Cause
    before: str


def with_added(causes: dict[str, Cause]) -> dict[str, Cause]:
    """The causes by id, in their order, with those of plug-ins."""

    def refused(added: AddedCause) -> str:
        cause, before = added
        if not isinstance(cause, Cause):
            return "it has no Cause"
        if not _ID.fullmatch(cause.id) or cause.id in causes:
            return f"its id '{cause.id}' is taken, or has other characters than a-z, 0-9 and _"
        if not cause.picture:
            return "it has no picture"  # whose words are then those of a file of nsysdiag
        return "" if before in causes else f"there is no cause '{before}' for it to stand in front of"

    for cause, before in plugins.plugins(plugins.CAUSES, AddedCause, refused):
        order = list(causes)
        order.insert(order.index(before), cause.id)
        known = {**causes, cause.id: cause}
        causes = {each: known[each] for each in order}
    return causes
