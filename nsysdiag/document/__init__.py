"""What all formats share: names made safe, words, tables, drawings."""
