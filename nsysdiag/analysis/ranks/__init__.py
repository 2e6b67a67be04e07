"""Ranks of one run beside each other: collectives matched, clocks brought together, who was late and why."""
