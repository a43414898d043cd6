"""What people see, at every door: numbers and intervals, moments, tables, axes of charts, progress of long work.

Imports errors and libraries; every other room above the kernel may import it.
Never here: a row, a question, an oracle, or a page of one door.
"""
