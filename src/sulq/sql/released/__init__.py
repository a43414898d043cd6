"""What a SELECT does with released numbers: expressions, groups, ranges and rendering. All of it is free.

Imports the rooms before it; asks nothing and sees no row.
"""
