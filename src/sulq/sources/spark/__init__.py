"""The Spark engine: rows prepared on a cluster as integers, summed there by certified statements and programs.

Imports DuckDB's room for the text that partitions run; what runs on executors is found there by name.
"""
