"""The annex: statistics of the whole table, each with its exact function and its proved sensitivity side by side."""
