"""The DuckDB engine: files and frames, their prepared copy, and certified statements over it.

Imports the compiler; whatever it proposes is certified by the kernel.
"""
