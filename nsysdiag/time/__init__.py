"""The table of time: each nanosecond of a device is in one row, and what a report says of time is a sum of rows."""
