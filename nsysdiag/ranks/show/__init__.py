"""The outputs of `nsysdiag ranks`, and the part of a report that compares devices."""
