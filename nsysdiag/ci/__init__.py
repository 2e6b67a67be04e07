"""What CI asks of a finished report: budgets, and whether they are kept."""
