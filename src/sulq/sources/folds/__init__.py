"""Exact sums of row functions over rows in NumPy: the reference meaning, where SQL does not say a part.

May be imported: the language, the compiler's column demand and the kernel's values. Never here: SQL, files, or a second
fast path: programs of the kernel are the fast one.
"""
