"""The outputs of `nsysdiag compare`."""
