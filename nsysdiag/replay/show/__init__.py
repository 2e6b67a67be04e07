"""The outputs of `nsysdiag whatif`."""
