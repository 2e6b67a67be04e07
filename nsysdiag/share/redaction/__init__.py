"""Reports without names: a pure function from report to report, applied before anything is written.

What a trace calls things is replaced, everything that was measured stays. See fields for what each field holds, names
for what stands in for a name, sentences for names inside texts.
"""

from nsysdiag.share.redaction.names import Names
from nsysdiag.share.redaction.redact import KEYED, NUMBERED, SETTING, is_redacted, redacted, redacted_by

__all__ = ["KEYED", "NUMBERED", "SETTING", "Names", "is_redacted", "redacted", "redacted_by"]
