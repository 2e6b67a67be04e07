"""Gaps in full, and gaps at the same place of the program added up."""
