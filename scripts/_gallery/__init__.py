"""The gallery of the documentation: reports about captures of this repository and about simulated jobs."""
