"""The outputs of `nsysdiag whatif`, and what reports show of predictions."""
