"""Numbers as literals of SQL."""

from __future__ import annotations


def double(number: float) -> str:
    """A double literal that DuckDB reads back to the same bits."""
    text = repr(float(number) + 0.0)
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text


def whole(number: int) -> str:
    """An integer literal."""
    return f"({number})" if number < 0 else str(number)
