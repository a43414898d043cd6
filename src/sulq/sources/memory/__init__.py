"""The reference engine: all rows in memory, read by plain Python and NumPy; small, slow and easy to check.

May be imported: the language, decode and the reference folds. Never here: SQL; tests compare the other engines with it,
and it is outside the promise of certificates.
"""
