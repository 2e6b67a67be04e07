"""One report in the formats of CI systems: as a batch of one trace."""
