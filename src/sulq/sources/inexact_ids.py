"""Ids of which no exact number can be told: such a row would be left out, so its owner is told instead (SR25)."""

from __future__ import annotations

from typing import Final

from sulq.errors import SetupError
from sulq.sources.decode import person
from sulq.sources.decode.person import EXACT, FIGURES, Form

UNSURE: Final = frozenset({"figures", *EXACT})  # forms that have values of which no exact number can be told


def inexact(table: str, column: str, form: Form) -> SetupError:
    """Stop the owner, who alone hears of it."""
    if form == "figures":
        why = "is declared a number and holds an id that is none"
    else:
        why = f"holds floating-point ids that are no whole numbers below 2^{EXACT[form].bit_length() - 1}"
    return SetupError("person-type", f"Column {column!r} of {table!r} {why}: ids may have been rounded to one.")


def unfit_sql(form: Form, item: str) -> str:
    """Whether a cell holds something of which no exact number can be told; NaN, infinities and blanks are missing."""
    if form == "figures":
        text = person.trimmed(item)
        return f"{text} <> '' AND NOT regexp_full_match({text}, '{FIGURES}')"
    return f"isfinite({item}) AND NOT ({person.fits(form, item)})"
