"""The phases of a job: where it starts, works steadily, pauses and ends, and what can be judged of it."""
