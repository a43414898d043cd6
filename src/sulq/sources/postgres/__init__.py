"""Tables in PostgreSQL: a prepared copy in the same database, read into a private DuckDB and asked there.

The only room of sources that names psycopg, but for decode.
"""
