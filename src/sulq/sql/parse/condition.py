"""A condition on rows as text, `year = 1984 AND city = 'Lod'`, read as what stands after WHERE is, and nothing more."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from sulq.errors import QuestionError
from sulq.sql.parse import syntax
from sulq.sql.parse.expressions import ExpressionReader
from sulq.sql.parse.syntax import PLAIN_CONDITION, Node, SqlRefused, unsupported
from sulq.sql.parse.tree import checked, limit, tokens, tree

WHAT: Final = "condition"
CLAUSES: Final = ("SELECT", "WITH", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "EXPLAIN")
WHOLE_QUERY: Final = "Write what would stand after WHERE, or a whole query: db.sql('SELECT ...')."
GROUPED: Final = "Filter the groups of the answer, or write HAVING in a whole query: db.sql('SELECT ...')."


class ConditionReader(ExpressionReader):
    """Reads one condition: no query stands inside."""

    def query(self, node: exp.Expr) -> syntax.Query:
        """Refuse a subquery: it would join other rows to these."""
        first = self.text.upper().rfind("SELECT", 0, self.at(node) + 1)
        return unsupported("A subquery in a condition", max(first, 0), "Write the whole query: db.sql('SELECT ...').")


def parse_condition(text: str) -> Node:
    """Read a condition, or raise what is refused with its place in the text (SqlRefused)."""
    text = checked(text, WHAT)
    found = tokens(text)
    if not found:
        raise QuestionError("sql-syntax", "A condition is a text.", PLAIN_CONDITION)
    limit(found, WHAT)
    for token in found[:1]:
        if token.text.split()[0].upper() in CLAUSES:
            raise SqlRefused(
                "sql-syntax", f"A condition does not begin with {token.text.upper()}", token.start, WHOLE_QUERY
            )
    try:
        node = ConditionReader(text).node(tree(found, text, WHAT))
    except SqlRefused as refused:
        clause = text[refused.at :].lstrip().partition(" ")[0].upper() in CLAUSES
        if refused.code != "sql-syntax" or not clause:
            raise
        raise SqlRefused(refused.code, refused.message, refused.at, WHOLE_QUERY) from None
    for part in syntax.walk(node):
        if isinstance(part, syntax.Aggregate):
            unsupported(f"{part.called.upper()} in a condition on rows", part.at, GROUPED)
    return node
