"""Named baselines: folders with the saved reports of runs, and what of their regressions is accepted."""
