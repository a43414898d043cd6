"""Exact sums of row functions over batches of rows in NumPy: the reference meaning that engines share.

Used where rows are not certified; sees rows and decides nothing.
"""
