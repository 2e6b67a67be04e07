"""Findings: each cause at the place where it costs most."""
