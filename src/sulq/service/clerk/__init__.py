"""The clerk: the one process that writes ledgers and decides who may ask.

Imports the curator and the ledger; never an engine, a source or DuckDB: it sees no row.
"""
