"""The DuckDB engine: files and frames, their prepared copy, and certified statements over it.

May be imported: the compiler, the kernel, decode, the reference folds and what all engines share. Never here: another
engine, prices, noise, or a statement that the kernel did not certify over a prepared copy.
"""
