"""Tests of sulq.sql.parse.refusals: what is refused is called as it was written, with its place and a remedy."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp

from sulq.errors import CODES, QuestionError
from sulq.sql import compile as compiled
from sulq.sql.parse import refusals
from sulq.sql.parse.tree import PlacedParser
from tests.counts import count
from tests.sql import constructs, refused

FACTS = constructs.facts()
# Words of SQL's grammar, which refusals may use whatever the text says.
GRAMMAR = {
    "SQL", "NULL", "TRUE", "FALSE", "HAVING", "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "JOIN", "WITH",
    "COUNT", "DISTINCT", "CASE", "LIKE", "CAST", "AND", "OR", "NOT", "IS", "IN", "ON", "COLLATE", "USING",
}  # fmt: skip


def faults(text: str) -> list[str]:
    """What is wrong with the refusal of a text; nothing where it is answered."""
    try:
        compiled.compile(text, FACTS)
    except QuestionError as error:
        told = error.message
        words = set(re.findall(r"\b[A-Z][A-Z_]+\b", told)) | set(re.findall(r"\b([a-z_]+)\(\)", told))
        strange = [w for w in words if w not in GRAMMAR and not re.search(rf"(?i)(?<![a-z_])b?{w}(?!\w)", text)]
        found = [f"{word} is not in the text" for word in strange]
        if not re.search(r"at line \d+, column \d+\.$", told) and error.code != "too-large":
            found.append("no place")
        if error.remedy.startswith("See ") or (error.code == "sql-unsupported" and error.remedy == CODES[error.code]):
            found.append("no remedy")
        return [f"{text}: {told} {fault}" for fault in found]
    return []


@pytest.mark.parametrize("text", refused.texts())
def test_a_refusal_names_what_was_written_where_it_stands_and_what_to_do(text: str) -> None:
    """No word is the parser's own, every refusal has line and column, and none says only where to read."""
    with pytest.raises(QuestionError):
        compiled.compile(text, FACTS)
    assert faults(text) == []


def test_every_function_the_parser_knows_is_answered_or_refused_in_the_words_of_the_text_T18() -> None:
    """All names of the parser, with no argument to four, on rows and on groups; nothing but a refusal is raised."""
    every = list(refused.calls())
    some = count("refused calls of functions", short=500, long=len(every))
    found = [fault for text in every[:: max(1, len(every) // some)] for fault in faults(text)]
    assert found == []


def test_the_check_of_refusals_finds_what_it_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: with the parser's own names and no remedies the same check fails."""
    monkeypatch.setattr(refusals, "word", lambda node, _: str(node.key))
    monkeypatch.setattr(refusals, "span", lambda _: (0, 0))
    monkeypatch.setattr(refusals, "remedy", lambda *_: "")
    assert len(faults("SELECT STRING_AGG(sex, ',') FROM people GROUP BY sex")) == 2


@pytest.mark.parametrize(
    ("text", "name", "part"),
    [
        ("STRING_AGG(a, ',')", "string_agg()", "Group by"),
        ("DECODE(a, 1, 2)", "decode()", "CASE WHEN"),
        ("CURRENT_DATE", "CURRENT_DATE", "DATE '2026"),
        ("a ->> 'b'", "The operator ->>", "operators are"),
        ("(a) & (b)", "The operator &", "AND, OR"),
        ("cieling(a)", "cieling()", "Did you mean CEILING?"),
        ("RANK() OVER (ORDER BY a)", "A window function (OVER)", "Group and aggregate"),
        ("a AT TIME ZONE 'x'", "AT TIME ZONE", "UTC"),
    ],
)
def test_constructs_are_called_as_they_were_written(text: str, name: str, part: str) -> None:
    """A function by its word, an operator by its sign, a construct as SQL's grammar calls it; each has its remedy."""
    parser = PlacedParser(dialect="postgres")
    (node,) = parser.parse_into(exp.Condition, list(sqlglot.tokenize(text, dialect="postgres")), text)
    assert refusals.written(node, text) == name
    assert part in refusals.remedy(node, text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a::timestamptz", "timestamptz"),
        ("CAST(a AS timestamp with time zone)", "timestamp with time zone"),
        ("CAST((a) AS bytea)", "bytea"),
        ("json '1'", "json"),
        ("CAST(NULL AS json)", "this type"),
    ],
)
def test_a_type_is_called_as_it_was_written(text: str, name: str) -> None:
    """BYTEA is not VARBINARY, whatever the parser makes of it."""
    node = sqlglot.parse_one(text, dialect="postgres")
    assert refusals.type_name(node, text) == name
