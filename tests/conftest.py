"""Settings of the whole suite."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("default", max_examples=100, deadline=None)
hypothesis.settings.load_profile("default")
