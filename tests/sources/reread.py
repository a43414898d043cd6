"""A statement of ours, read again: by a small lexer that knows all we ever write, and by DuckDB's own parser (T70).

What the one sees the other must see: the same numbers, parameters and texts, and no
name, function, table or kind of expression but those on the lists below. A text of
somebody else's that got into the statement would be none of them, and a sign that
the two read differently would leave them with different remainders.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest

from sulq.sources import stored_engine

TOKEN = re.compile(
    r"\s+|(?P<word>[A-Za-z_][A-Za-z_0-9]*)|(?P<number>[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)|\$(?P<bound>[a-z]+[0-9]*)"
    r"|(?P<text>'(?:[^']|'')*')|(?P<sign><=|>=|<>|!=|\|\||//|\[|\]|[-+*/%(),.<>=~])"
)
FUNCTIONS = {
    # questions
    "!=", "%", "*", "+", "-", "/", "//", "<", "<=", "<>", "=", ">", ">=",
    "||", "~~", "abs", "ceil", "coalesce", "contains", "count", "count_star", "date_part", "date_trunc",
    "epoch_us", "exp", "floor", "greatest", "grouping_id", "instr", "isfinite", "least", "length", "list_extract",
    "list_value", "ln", "lower", "ltrim", "make_timestamp", "max", "min", "pow", "regexp_matches", "round", "rtrim",
    "sign", "sqrt", "starts_with", "strlen", "substr", "suffix", "sum", "translate", "trim", "trunc", "upper",
    # reading a source
    "chr", "concat", "concat_ws", "enum_code", "epoch_ns", "isnan", "list_position", "lpad", "nfc_normalize",
    "read_csv", "read_parquet", "regexp_extract", "regexp_full_match", "regexp_replace", "replace", "row_number",
    "rpad", "sha256", "struct_pack",
}  # fmt: skip
"""Every function that may stand in generated SQL (T18)."""
NAME = re.compile(r"(?:[abcdfknstv][0-9]+|[ahklopru]|one|people[0-9]*|person|place|kept[0-9]*|source[0-9]*|data)")
TABLE = re.compile(r"kept[0-9]*|source[0-9]*|people[0-9]*")
PARAMETER = re.compile(r"(?:text|key|categories)[0-9]*")
TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UHUGEINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP"}
CLASSES = {
    "COLUMN_REF", "CONSTANT", "FUNCTION", "CAST", "TYPE", "CASE", "COMPARISON", "CONJUNCTION", "OPERATOR", "STAR",
    "PARAMETER", "BETWEEN",
}  # fmt: skip
KINDS = {
    "SELECT_NODE", "SUBQUERY", "BASE_TABLE", "JOIN", "SET_OPERATION_NODE", "ORDER_MODIFIER", "DISTINCT_MODIFIER",
}  # fmt: skip
JOINS = {("REGULAR", "INNER"), ("REGULAR", "LEFT")}
EMPTY = ("sample", "qualify", "at_clause", "having", "window", "exclude_list", "replace_list", "column_name_alias",
         "using_columns", "rename_list")  # fmt: skip
OWN_TEXTS = {
    "microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "dow", "isodow", "doy",
    "isoyear", "decade", "century", "epoch",
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "s",  # letters of ASCII, and how a pattern is matched
}  # fmt: skip


def listen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement questions send from now on, as they are sent."""
    statements: list[str] = []

    class Heard(stored_engine.CursorRunner):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            self.statements = statements

    monkeypatch.setattr(stored_engine, "CursorRunner", Heard)
    return statements


def parsed(statement: str) -> dict[str, object]:
    """A statement as DuckDB's own parser reads it."""
    return json.loads(duckdb.execute("SELECT json_serialize_sql($1)", [statement]).fetchone()[0])


def nodes(tree: object) -> Iterator[dict[str, object]]:
    """Every node of a parsed statement."""
    front = [tree]
    while front:
        part = front.pop()
        if isinstance(part, dict):
            yield part
            front += part.values()
        elif isinstance(part, list):
            front += part


def faults(statement: str, texts: frozenset[str] = frozenset()) -> list[str]:
    """What a statement holds that we never write; `texts` are those its author must have bound instead."""
    tree = parsed(statement)
    if tree["error"] or len(tree["statements"]) != 1:
        return [f"not one statement: {str(tree)[:200]}"]
    ours, theirs = _lexed(statement), Counter()
    found = [] if ours is not None else ["a sign we do not write"]
    for node in nodes(tree["statements"]):
        found += _strange(node)
        theirs += _leaves(node)
    if ours is not None:
        words = {word for kind, word in ours if kind == "word"}
        unwritten = [name for kind, name in theirs if kind == "name" and name not in words]
        found += [f"a name {name!r} that was not written" for name in unwritten]
        for kind in ("number", "bound", "text"):
            one, other = ({item: n for item, n in side.items() if item[0] == kind} for side in (ours, theirs))
            found += [] if one == other else [f"{kind}s read otherwise: {one} and {other}"]
    found += [f"a text {text[:40]!r} of the question" for text in texts if len(text) > 3 and text in statement]
    return found


def _lexed(statement: str) -> Counter[tuple[str, str]] | None:
    """The words, numbers, parameters and texts of a statement; None where it holds anything else."""
    found: Counter[tuple[str, str]] = Counter()
    at = 0
    while at < len(statement):
        match = TOKEN.match(statement, at)
        if match is None or statement.startswith(("--", "/*"), at):
            return None
        at = match.end()
        if match.lastgroup in ("word", "number", "bound"):
            found[match.lastgroup, match[match.lastgroup]] += 1
        elif match.lastgroup == "text":
            found["text", match["text"][1:-1].replace("''", "'")] += 1
    return found


def _strange(node: dict[str, object]) -> list[str]:
    """What of one node is on no list."""
    found = [f"a {name}" for name in EMPTY if node.get(name)]
    if "class" in node and node["class"] not in CLASSES:
        found.append(f"an expression of class {node['class']}")
    if "class" not in node and "type" in node and str(node["type"]) not in KINDS:
        found.append(f"a part of type {node['type']}")
    if node.get("type") == "JOIN" and (node["ref_type"], node["join_type"]) not in JOINS:
        found.append(f"a join of type {node['ref_type']} {node['join_type']}")
    if node.get("function_name", "count") not in FUNCTIONS:
        found.append(f"a function {node['function_name']}")
    names = [*(node.get("column_names") or ()), *([node["alias"]] if node.get("alias") else [])]
    found += [f"a name {name!r}" for name in names if not NAME.fullmatch(str(name))]
    if "table_name" in node:
        where = (node.get("catalog_name"), node.get("schema_name"))
        if where not in (("", ""), ("", "data"), ("data", "")) or not TABLE.fullmatch(str(node["table_name"])):
            found.append(f"a table {where} {node['table_name']!r}")
    if node.get("class") == "TYPE" and str(node["type_name"]).upper() not in TYPES:
        found.append(f"a type {node['type_name']!r}")
    if node.get("class") == "PARAMETER" and not PARAMETER.fullmatch(str(node["identifier"])):
        found.append(f"a parameter {node['identifier']!r}")
    literal = node.get("literal")
    if isinstance(literal, dict) and literal["kind"] == "STRING" and literal["text"] not in OWN_TEXTS:
        found.append(f"a text {str(literal['text'])[:40]!r}")
    if node.get("cte_map", {"map": []}) != {"map": []}:
        found.append("a WITH query")
    return found


def _leaves(node: dict[str, object]) -> Counter[tuple[str, str]]:
    """Names, numbers, parameters and texts of one node."""
    found: Counter[tuple[str, str]] = Counter()
    found.update(("name", str(name)) for name in node.get("column_names") or ())
    for name, kind in (("alias", "name"), ("table_name", "name"), ("identifier", "bound")):
        if node.get(name):
            found[kind, str(node[name])] += 1
    literal = node.get("literal")
    if isinstance(literal, dict) and literal["kind"] in ("NUMERIC", "INTEGER"):
        found["number", str(literal["text"]).lstrip("-")] += 1
    if isinstance(literal, dict) and literal["kind"] == "STRING":
        found["text", str(literal["text"])] += 1
    return found
