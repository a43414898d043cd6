"""The reference engine: all rows in memory, read by plain Python and NumPy; small, slow and easy to check.

Outside the promise of certificates; tests compare the other engines with it.
"""
