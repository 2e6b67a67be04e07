"""Report by report: what a unit of work took before and after, what changed, and whether it is more than chance."""
