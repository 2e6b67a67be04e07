"""The ranks of one run: collectives matched, clocks aligned, late ranks followed to their cause."""
