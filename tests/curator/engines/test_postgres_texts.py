"""Texts in PostgreSQL's SQL: code points and ASCII letters, whatever locale the database has."""

from __future__ import annotations

import pytest

from sulq.terms.rowfn import Col, Concat, IndexOf, Length, Like, Lit, Lowered, StartsWith, Substring, Trimmed, Uppered
from tests.curator.engines.rowwise import filled, in_numpy
from tests.curator.engines.rowwise_postgres import in_postgres

NAME = Col("name")
ROWS = filled(
    {
        "name": [
            None, "", " ", "Lod", "LOD", "\u0130stanbul", "stra\u00dfe", "\u00c9t\u00e9", "e\u0301", "\u0301",
            "\u05d0b", "\U0001f986duck", "a%b_c\\d", "aXbXc", "\u01c5", "\u03a3\u03c3\u03c2",
            " \u00a0x\u00a0 ", "z" * 10_000,
        ]
    }
)  # fmt: skip
FUNCTIONS = [
    Lowered(NAME),
    Uppered(NAME),
    Trimmed(NAME, "both", " "),
    Trimmed(NAME, "left", "\u00a0 Le\u0301"),
    Trimmed(NAME, "right", "dc\\_"),
    Trimmed(NAME, "both", ""),
    Substring(NAME, 2),
    Substring(NAME, -1, 4),
    Substring(NAME, 2, 0),
    Substring(NAME, 10**9, 10**9),
    Concat((NAME, Lit("\u0301x"), NAME)),
    Length(NAME),
    Length(Concat((NAME, NAME))),
    IndexOf(NAME, "\u0301"),
    IndexOf(NAME, ""),
    IndexOf(NAME, "X"),
    StartsWith(NAME, "\U0001f986"),
    StartsWith(NAME, ""),
    Like(NAME, "%"),
    Like(NAME, "Lo%"),
    Like(NAME, "%\u0301%"),
    Like(NAME, "a\\%b\\_c\\\\d"),
    NAME == "\u00c9t\u00e9",
    Lowered(NAME) == "lod",
]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=repr)
def test_every_function_of_text_is_pythons(fn):
    """Letters outside ASCII keep their case, a combining mark is a character, a missing text stays missing."""
    found = in_postgres(fn, ROWS)
    assert found is not None
    assert found == in_numpy(fn, ROWS)


@pytest.mark.parametrize("pattern", ["_od", "L%d", "%d", "a_%"])
def test_other_patterns_are_left_to_batches(pattern):
    """PostgreSQL's LIKE may take long on a hostile pattern; the batch path takes linear time."""
    assert in_postgres(Like(NAME, pattern), ROWS) is None


def test_lower_itself_goes_by_a_locale():
    """Control: what is not used would differ; in the collation of a language it lowers other letters too."""
    assert in_postgres(Lowered(NAME), ROWS)[7] == "\u00c9t\u00e9" != "\u00c9t\u00e9".lower()
