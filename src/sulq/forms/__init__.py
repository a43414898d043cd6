"""Forms read off signatures: what the command line, the jobs and the console ask for.

Imports errors alone; knows no dataset.
"""
