"""What a program is made with: its frameworks, by what the trace names."""
