"""Tables in PostgreSQL: a prepared copy in the same database, read into a private DuckDB and asked there.

May be imported: psycopg, DuckDB's room and what all engines share. Never here: SQL that sums rows in PostgreSQL, or a
text of its errors, which may hold a cell.
"""
