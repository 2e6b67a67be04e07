"""Arrays of numbers and nothing else: intervals, claims, nesting, groups, buckets, and how large arrays are kept."""
