"""Tallies to statements and programs over kept rows: what the kernel certifies and runs.

Imports the emitters; looks at no row, nor at how many there are.
"""
