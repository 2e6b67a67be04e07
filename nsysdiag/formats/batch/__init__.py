"""What is written of many traces: a page, its trend, and the files that CI systems read."""
