"""The command line: one file per command. It handles options, streams and exit codes, and computes nothing."""
