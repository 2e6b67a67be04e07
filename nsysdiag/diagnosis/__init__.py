"""What the figures of a device mean: its bottleneck, and what the trace could not tell."""
