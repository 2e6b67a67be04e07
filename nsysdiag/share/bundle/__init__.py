"""A zip for a ticket: the report, its findings, and a slice of the trace that shows the same."""
