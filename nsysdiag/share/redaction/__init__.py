"""Reports without names: a pure function from report to report, applied before anything is written.

What a trace calls things is replaced, everything that was measured stays. The type of a field says what its text holds,
see nsysdiag.fields; see names for what replaces a name, sentences for names inside texts.
"""

from nsysdiag.share.redaction.redact import SETTING, is_redacted, redacted, redacted_by
from nsysdiag.share.redaction.settings import Names

__all__ = ["SETTING", "Names", "is_redacted", "redacted", "redacted_by"]
