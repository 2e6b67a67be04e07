"""What each cause looks like in detail: all kinds in one table."""

from __future__ import annotations

from nsysdiag.causes.variant import Variant
from nsysdiag.causes.variants_of_calls import OF_CALLS
from nsysdiag.causes.variants_of_device import OF_DEVICE
from nsysdiag.causes.variants_of_host import OF_HOST

KINDS: dict[str, tuple[Variant, ...]] = {**OF_CALLS, **OF_HOST, **OF_DEVICE}


def kind_of(cause: str, label: str, call: str, hint: str | None) -> int:
    """The place of the first kind of `cause` that matches; a hint that no kind asks for changes nothing."""
    return next(at for at, kind in enumerate(KINDS[cause]) if kind.matches(label, call, hint))
