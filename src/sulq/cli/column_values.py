"""What a configuration file says of a column, as a domain reads it."""

from __future__ import annotations

import datetime
from typing import Any

from sulq.language.domain import Column, declare


def plain(value: Any) -> Any:  # noqa: ANN401 - a value of TOML
    """A date or a moment as the text that a domain reads."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def declared_by_array(values: list[object], name: str) -> Column:
    """A bare array: two numbers are bounds, texts are categories."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return declare(tuple(values) if numbers and len(values) == 2 else values, name)
