"""The trusted core: what sees a row, debits, or draws noise.

May import: itself, errors, version, duckdb, numpy; the ledger's stores apsw and psycopg. Never here: anything that
proposes (plans, row functions, SQL writers); a statement is read, certified and priced here, whoever wrote it.
"""
