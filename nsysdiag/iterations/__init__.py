"""The steps of a program: found, measured, and the window of the analysis."""
