"""Collectives and MPI calls: how much of them is exposed."""
