"""The outputs of predictions."""
