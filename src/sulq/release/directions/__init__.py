"""Nets of directions through the middle of the data, and random projections to few dimensions."""
