"""Reports before and after: what a unit of work took, what changed, and whether it is more than chance."""
