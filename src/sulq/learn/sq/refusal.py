"""Why a statistical query is not asked: the rows, or the queries, it would take."""

from __future__ import annotations

from sulq.errors import QuestionError


def too_few_rows(tau: float, queries: int, needed: int, known: str) -> QuestionError:
    """The refusal of a tolerance that this many rows cannot give, with the number that could.

    Sizes in it are declared or released, never read off the rows (SR6).
    """
    asked = "A query" if queries == 1 else f"{queries:,} queries"
    return QuestionError("too-few-rows", f"{asked} of tolerance {tau:g} would need about {needed:,} rows; {known}.")


def too_many_queries(queries: int) -> QuestionError:
    """The refusal of a query past those the oracle was opened for."""
    return QuestionError(
        "too-large", f"This oracle was opened for {queries:,} queries.", "Open it with a larger queries=."
    )
