"""From a text to the parser's tree: limits first (T74), then sqlglot, with the place of every refusal.

What is parsed is a query, or a condition alone (`what`). The parser calls functions by names of its own; here it also
keeps the word that stands in the text, so that a refusal says what was written.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from sulq.errors import QuestionError
from sulq.language.domain import is_text
from sulq.sql.parse.syntax import PLAIN_CONDITION, SqlRefused

MAX_QUERY_BYTES: Final = 100_000  # bytes
MAX_TOKENS: Final = 4_000
MAX_DEPTH: Final = 80
MAX_UNIONS: Final = 32
MAX_PREFIX_OPERATORS: Final = 16
MAX_WORD_LETTERS: Final = 40  # letters of a word that a refusal repeats
WORD: Final = re.compile(r"\w+|[^\w\s]")
SIGN: Final = re.compile(r"\S")
OPENED: Final = re.compile(r"['\"]|--|/\*|\$\w*\$")
CLOSED: Final = {"--": "\n", "/*": "*/"}  # by what else than itself a quotation or remark ends
# What a whole query may hold of a construct, and how many parts one of them may have: each costs time to plan (T74).
MAX_OF_A_CONSTRUCT: Final[tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], int, str], ...]] = (
    (exp.Select, 64, "SELECTs"),
    (exp.Join, 16, "joins"),
    (exp.AggFunc, 128, "aggregates"),
    ((exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile), 32, "quantiles"),
)
MAX_SIDE_BY_SIDE: Final[tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], int, str], ...]] = (
    ((exp.Group, exp.Rollup, exp.Cube), 32, "keys"),
    (exp.GroupingSets, 64, "grouping sets"),
    (exp.Order, 64, "columns to sort by"),
    (exp.Func, 100, "values of a function"),
)
DIALECT: Final = "postgres"
PREFIXES: Final = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
BROKEN: Final = (ValueError, TypeError, LookupError, AttributeError)  # the parser's own, of what no grammar foresaw
AROUND: Final = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


class PlacedParser(PostgresParser):
    """The library's parser, which keeps the place of a function's name on the function's node (`word`)."""

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:  # noqa: ANN401 - passed on as they are
        token = self._curr
        found = super()._parse_function_call(*args, **options)
        inner = found
        while isinstance(inner, AROUND):
            inner = inner.this
        if token is not None and isinstance(inner, exp.Expr):
            inner.meta.setdefault("word", (token.start, token.end))
        return found


def checked(text: object, what: str) -> str:
    """Insist on a text of a length that may be parsed."""
    remedy = "" if what == "query" else PLAIN_CONDITION
    if not isinstance(text, str) or not text.strip():
        raise QuestionError("sql-syntax", f"A {what} is a text.", remedy)
    if len(text) > MAX_QUERY_BYTES or len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise QuestionError("too-large", f"A {what} has at most {MAX_QUERY_BYTES:,} bytes.")
    if "\x00" in text or not is_text(text):
        raise QuestionError("sql-syntax", f"A {what} is text: it holds no NUL and no half of a character.", remedy)
    rough = itertools.islice(WORD.finditer(text), 2 * MAX_TOKENS + 1)  # counted first: the parser's own words are dear
    if sum(1 for _ in rough) > 2 * MAX_TOKENS:
        raise QuestionError("too-large", f"A {what} has at most {MAX_TOKENS:,} words.")
    return text


def tokens(text: str) -> list[Token]:
    """The words of a text, remarks left out."""
    try:
        found = list(sqlglot.tokenize(text, dialect=DIALECT))
        plain = _without_remarks(text, found)
        return found if plain == text else list(sqlglot.tokenize(plain, dialect=DIALECT))
    except SqlglotError:
        at = _unclosed(text)
        if at is None:
            raise SqlRefused("sql-syntax", "The text holds a sign that SQL has not", 0) from None
        what = "remark" if text[at] == "/" else "quotation"
        remedy = "Close it; a quotation mark inside a quotation is written twice: 'O''Hara'."
        raise SqlRefused("sql-syntax", f"The {what} that begins here has no end", at, remedy) from None


def _unclosed(text: str) -> int | None:
    """Where the quotation or remark begins that has no end."""
    opened = OPENED.search(text)
    while opened is not None:
        sign = opened.group()
        closing = CLOSED.get(sign, sign)
        end = text.find(closing, opened.end())
        if end < 0:
            return None if sign == "--" else opened.start()
        opened = OPENED.search(text, end + len(closing))
    return None


def _without_remarks(text: str, found: list[Token]) -> str:
    """The text with blanks for remarks, every word in its place, so that GROUP /* so */ BY is one keyword.

    Between two of the parser's words there are blanks and remarks alone: quotations are words.
    """
    pieces, last = [], 0
    for token in found:
        pieces += [SIGN.sub(" ", text[last : token.start]), text[token.start : token.end + 1]]
        last = token.end + 1
    return "".join([*pieces, SIGN.sub(" ", text[last:])])


def limit(found: list[Token], what: str) -> None:
    """Refuse a bomb before it is parsed: too many words, too deep, too long a chain (T74)."""
    if len(found) > MAX_TOKENS:
        raise SqlRefused("too-large", f"A {what} has at most {MAX_TOKENS:,} words", found[MAX_TOKENS].start)
    depth = run = unions = 0
    for token in found:
        kind = token.token_type
        depth += (kind in OPENING) - (kind in CLOSING)
        run = run + 1 if kind in PREFIXES else 0
        unions += kind == TokenType.UNION
        if depth > MAX_DEPTH or run > MAX_PREFIX_OPERATORS or unions > MAX_UNIONS:
            raise SqlRefused("too-large", f"The {what} is nested too deeply", token.start)


def tree(found: list[Token], text: str, what: str) -> exp.Expr:
    """The parser's tree of the one query or condition, measured."""
    parser = PlacedParser(dialect=DIALECT)
    try:
        trees = parser.parse(found, text) if what == "query" else parser.parse_into(exp.Condition, found, text)
    except ParseError as error:
        raise _unread(error, found) from None
    except BROKEN:
        raise SqlRefused("sql-syntax", "This is not SQL as PostgreSQL writes it", _stopped(parser)) from None
    trees = [tree for tree in trees if tree is not None]
    if len(trees) != 1 or trees[0] is None:
        semicolon = next((t.start for t in found if t.token_type == TokenType.SEMICOLON), 0)
        raise SqlRefused("sql-syntax", f"One {what} at a time", semicolon)
    _measured(trees[0], what)
    return trees[0]


def _stopped(parser: PlacedParser) -> int:
    """The place of the word at which the parser stood."""
    token = parser._curr or parser._prev  # noqa: SLF001 - of our own class
    return 0 if token is None else int(token.start)


def _unread(error: ParseError, found: list[Token]) -> SqlRefused:
    """The refusal of a text that breaks the grammar, at the word where the parser stopped."""
    first = error.errors[0] if error.errors else {}
    place = first.get("line"), first.get("col")
    token = next((token for token in found if (token.line, token.col) == place), found[-1])
    if "number of provided arguments" in str(first.get("description")):
        remedy = "Give the function the arguments that PostgreSQL lists."
        return SqlRefused(
            "sql-syntax", "The function that ends here does not take so many arguments", token.start, remedy
        )
    word = str(first.get("highlight") or token.text)[:MAX_WORD_LETTERS]
    return SqlRefused("sql-syntax", f"This is not SQL as PostgreSQL writes it, near {word!r}", token.start)


def place(node: exp.Expr) -> int | None:
    """The earliest place in the text that is known of a node's own parts."""
    found = [item.meta["word"][0] if "word" in item.meta else item.meta.get("start") for item in node.walk()]
    return min((int(start) for start in found if start is not None), default=None)


def _measured(tree: exp.Expr, what: str) -> None:
    """Refuse a tree deeper than is read by recursion (a chain of AND or OR is one step), or of too many parts."""
    counts: Counter[str] = Counter()
    front = [(tree, 0)]
    while front:
        node, depth = front.pop()
        if depth > MAX_DEPTH:
            raise SqlRefused("too-large", f"The {what} is nested too deeply", place(node) or 0)
        for kind, most, parts in MAX_OF_A_CONSTRUCT:
            counts[parts] += isinstance(node, kind)
            if counts[parts] > most:
                raise SqlRefused("too-large", f"A {what} has at most {most} {parts}", place(node) or 0)
        listed = node.args.get("expressions")
        wide = len(listed) if isinstance(listed, list) else 0
        for kind, most, parts in MAX_SIDE_BY_SIDE:
            if wide > most and isinstance(node, kind):
                raise SqlRefused("too-large", f"At most {most} {parts} stand side by side", place(node) or 0)
        for child in node.iter_expressions():
            chained = type(child) is type(node) and type(node) in (exp.And, exp.Or)
            front.append((child, depth + (not chained)))
