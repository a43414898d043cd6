"""Exact functions of rows, each beside its proved sensitivity."""
