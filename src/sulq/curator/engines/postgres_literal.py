"""Numbers as PostgreSQL's literals."""

from __future__ import annotations


def double(number: float) -> str:
    """A double that PostgreSQL reads back to the same bits; a bare number would be a numeric."""
    return f"(float8 '{float(number) + 0.0!r}')"
