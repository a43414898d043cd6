"""DuckDB's own parse tree of a statement, read strictly: a part or a field that is not named here is refused.

Equal parts of a statement become one object, so that whoever walks the tree may remember what was found of a part by
its identity. Fields with an empty value are left out.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any, Final, cast

import duckdb

from sulq.kernel.facts import Refused, require

MAX_TEXT_BYTES: Final = 2**22
_PLACES: Final = ("query_location", "query_location_length")  # where in the text a part stands
_ORDER: Final = (("type", "ORDER_MODIFIER"),)  # an ORDER BY of nothing
EXPRESSIONS: Final = {  # by class; beside these fields each has its type and may have an alias
    "BETWEEN": "input lower upper", "CASE": "case_checks else_expr", "CAST": "child type_expr try_cast",
    "COLUMN_REF": "column_names", "COMPARISON": "left right", "CONJUNCTION": "children", "CONSTANT": "literal",
    "FUNCTION": "function_name arguments is_operator qualified_name distinct", "OPERATOR": "children",
    "PARAMETER": "identifier", "STAR": "", "TYPE": "type_name qualified_name",
}  # fmt: skip
_RELATIONS: Final = {  # by type
    "BASE_TABLE": "table_name schema_name catalog_name qualified_name alias", "DISTINCT_MODIFIER": "", "EMPTY": "",
    "JOIN": "left right condition join_type ref_type nearest_count nearest_order_type",
    "SELECT_NODE": "select_list from_table where_clause group_expressions group_sets aggregate_handling modifiers",
    "SET_OPERATION_NODE": "setop_type setop_all children", "SUBQUERY": "subquery alias",
}  # fmt: skip
SIGNS: Final = {  # how a value may lie to what it is compared with
    "COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">=",
}  # fmt: skip
_OTHERS: Final = "statements node named_param_map key value expression when_expr then_expr kind text path"
Fields = tuple[tuple[str, Any], ...]


class Node:
    """One part of a statement; `parts`: those in it; `refs`: the references to columns in it."""

    __slots__ = ("_fields", "parts", "refs")

    def __init__(self, fields: Fields) -> None:
        self._fields = dict(fields)
        self.only(*_allowed(self.get("class"), self.get("type")))
        several = [item if isinstance(item, tuple) else (item,) for _, item in fields]
        self.parts = tuple([part for parts in several for part in parts if isinstance(part, Node)])
        self.refs: frozenset[Node] = frozenset().union(*(part.refs for part in self.parts))
        if self.get("class") == "COLUMN_REF":
            self.refs = frozenset({self})

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a text, a number, a Node or a tuple of them
        if name not in self._fields:
            raise Refused(f"a part without {name}")
        return self._fields[name]

    def get(self, name: str) -> Any:  # noqa: ANN401
        """A field, None where it is empty."""
        return self._fields.get(name)

    def only(self, *names: str) -> Node:
        """Refuse fields beside these; returns itself."""
        for name in self._fields:
            if name not in names:
                raise Refused(f"{self.get('type')} with {name}")
        return self

    def many(self, name: str) -> tuple[Node, ...]:
        """The parts under a name; none where it is empty."""
        return tuple(self._fields.get(name, ()))

    def call(self) -> tuple[str, tuple[Node, ...]]:
        """The name of a function, which is none of a schema, and its arguments; of different ones it says DISTINCT."""
        name: str = self["function_name"]
        require(self["qualified_name"]["path"] == (name,), "a function of a schema")
        different = " DISTINCT" if self.get("distinct") else ""
        return name + different, tuple(item["expression"] for item in self.many("arguments"))

    def said(self, texts: tuple[str, ...]) -> tuple[object, ...]:
        """What it says, with the texts that are bound in it: where two say the same, each row makes the same of it."""
        bound = self.get("class") == "PARAMETER"
        own = (("text", texts[int(self["identifier"].removeprefix("text"))]),) if bound else self._fields.items()
        return tuple([(name, _said(item, texts)) for name, item in own])


def _said(item: Any, texts: tuple[str, ...]) -> object:  # noqa: ANN401 - of a field
    if isinstance(item, Node):
        return item.said(texts)
    return tuple([_said(each, texts) for each in item]) if isinstance(item, tuple) else item


@functools.cache
def _allowed(kind: str | None, form: str | None) -> tuple[str, ...]:
    """The fields of a part of this class and type."""
    if kind is not None:
        return ("class", "type", "alias", *EXPRESSIONS[kind].split()) if kind in EXPRESSIONS else ()
    return ("type", *_RELATIONS[form].split()) if form in _RELATIONS else tuple(_OTHERS.split())


def parse(sql: str) -> Node:
    """The one SELECT of a text, as DuckDB parses it."""
    require(len(sql) <= MAX_TEXT_BYTES, "the text is too long")
    cursor = _parser(os.getpid()).cursor()
    try:
        found = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
        read = json.loads(found[0] if found else "", object_pairs_hook=functools.partial(_interned, {}))
        (statement,) = read.many("statements") if isinstance(read, Node) else ()
    except (duckdb.Error, ValueError, RecursionError):
        raise Refused("it is not one SELECT that DuckDB parses") from None
    finally:
        cursor.close()
    return cast("Node", statement["node"])


@functools.cache
def _parser(_process: int) -> duckdb.DuckDBPyConnection:
    """A database without rows or threads, one a process: a forked child would wait for a lock that a thread held."""
    return duckdb.connect(config={"threads": 1, "async_threads": 0, "enable_external_access": False})


def _interned(known: dict[Fields, Node], pairs: list[tuple[str, Any]]) -> Node | None:
    """A Node of an object's fields, the known one of the same; None where they say nothing."""
    fields = tuple(
        (name, _fixed(item) if isinstance(item, list) else item)
        for name, item in pairs
        if (item or (item == 0 and item is not False)) and name not in _PLACES
    )
    return None if not fields or fields == _ORDER else known.get(fields) or known.setdefault(fields, Node(fields))


def _fixed(items: list[Any]) -> tuple[Any, ...]:
    return tuple([_fixed(item) if isinstance(item, list) else item for item in items])
