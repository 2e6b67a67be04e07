"""The command line: one file a command; it knows options, streams and exit codes, and computes nothing."""
