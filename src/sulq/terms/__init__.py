"""The vocabulary of sulq: frozen values without I/O, shared by both halves."""
