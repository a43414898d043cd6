"""The web process: HTTP in and out, and one line to the clerk.

Imports questions, SQL and answers; never the curator, a ledger or data.
"""
