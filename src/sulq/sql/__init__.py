"""SQL to questions, and released numbers to the rows of the SELECT: the free half, from public facts alone.

`parse`, then `rows`, then `released`; the query as a whole stands here. Never imports the curator, a source or DuckDB.
"""
