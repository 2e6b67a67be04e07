"""What-if replay: the dependency graph of a trace, run again with something changed."""
