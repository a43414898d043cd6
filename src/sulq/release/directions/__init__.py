"""Halfspaces: nets of directions, the planes that are asked, and the sizes that the papers prove.

Imports answers, the language and release/space.py; planes are public whole numbers.
Never here: a float that decides about a row.
"""
