"""What people type, read: forms off signatures for commands, jobs and the console; values of other libraries.

Imports errors alone; knows no dataset.
"""
