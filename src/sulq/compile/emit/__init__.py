"""Row functions, and the reading of a source's cells, as SQL expressions.

Imports the language; every text is generated from typed values.
"""
