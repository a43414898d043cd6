"""What may be asked: domains, row functions, relations, questions, losses and units. Frozen values.

Imports the kernel and errors alone; does no I/O and sees no row.
"""
