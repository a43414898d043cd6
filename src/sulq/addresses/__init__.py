"""Where data, ledgers and prepared copies lie: addresses of PostgreSQL and the defaults beside the data.

Imports errors alone; opens nothing.
"""
