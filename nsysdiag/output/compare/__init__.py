"""Two sides compared, shown: the outputs of `nsysdiag compare`."""
