"""The Spark engine: rows prepared on a cluster as integers, summed there by certified statements and programs.

May be imported: pyspark where it is used, DuckDB's room and what all engines share. Never here: a text of an analyst's
on its way to executors, where our own functions are found by name.
"""
