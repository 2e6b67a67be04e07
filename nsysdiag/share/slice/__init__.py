"""Cuts a part out of a trace into a new database that says the same about that part and holds nothing else."""
