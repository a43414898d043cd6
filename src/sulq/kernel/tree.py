"""DuckDB's own parse tree of a statement, read strictly.

Equal parts of a statement become one object, so that whoever walks the tree may remember what was found of a part by
its identity. Fields with an empty value are left out; a field that a reader does not name is refused.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, Final

import duckdb

from sulq.kernel.facts import Refused

MAX_TEXT_BYTES: Final = 2**22
_PLACES: Final = ("query_location", "query_location_length")  # where in the text a part stands
_ORDER: Final = (("type", "ORDER_MODIFIER"),)  # an ORDER BY of nothing
Fields = tuple[tuple[str, Any], ...]


class Node:
    """One part of a statement; `parts`: those in it; `refs`: the references to columns in it."""

    __slots__ = ("_fields", "parts", "refs")

    def __init__(self, fields: Fields) -> None:
        self._fields = dict(fields)
        self.parts: tuple[Node, ...] = _nodes(tuple(item for _, item in fields))
        self.refs: frozenset[Node] = frozenset().union(*(part.refs for part in self.parts))
        if self._fields.get("class") == "COLUMN_REF":
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
        found = self._fields.get(name, ())
        if not isinstance(found, tuple) or not all(isinstance(item, Node) for item in found):
            raise Refused(f"{name} is no list of parts")
        return found

    def arguments(self) -> tuple[Node, ...]:
        """The arguments of a function, none of them named."""
        return tuple(item.only("expression")["expression"] for item in self.many("arguments"))


def parse(sql: str) -> Node:
    """The one SELECT of a text, as DuckDB parses it."""
    if len(sql) > MAX_TEXT_BYTES:
        raise Refused("the text is too long")
    cursor = _parser().cursor()
    try:
        found = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
        read = json.loads(found[0] if found else "", object_pairs_hook=_interning())
    except (duckdb.Error, ValueError, RecursionError):
        raise Refused("DuckDB does not parse it") from None
    finally:
        cursor.close()
    statements = read.only("statements").many("statements") if isinstance(read, Node) else ()
    if len(statements) != 1:
        raise Refused("it is not one SELECT")
    node = statements[0].only("node", "named_param_map")["node"]
    if not isinstance(node, Node):
        raise Refused("it is not one SELECT")
    return node


@functools.cache
def _parser() -> duckdb.DuckDBPyConnection:
    """A database without rows."""
    return duckdb.connect(config={"threads": 1, "enable_external_access": False})


def _interning() -> Callable[[list[tuple[str, Any]]], Node | None]:
    """Makes a Node of an object's fields, the same of the same; None where they say nothing."""
    known: dict[Fields, Node] = {}

    def interned(pairs: list[tuple[str, Any]]) -> Node | None:
        fields = tuple(
            (name, _fixed(item) if isinstance(item, list) else item)
            for name, item in pairs
            if (item or (item == 0 and item is not False)) and name not in _PLACES
        )
        if not fields or fields == _ORDER:
            return None
        found = known.get(fields)
        if found is None:
            found = known[fields] = Node(fields)
        return found

    return interned


def _nodes(item: object) -> tuple[Node, ...]:
    """All parts in a list, however deep."""
    if isinstance(item, tuple):
        return tuple(node for each in item for node in _nodes(each))
    return (item,) if isinstance(item, Node) else ()


def _fixed(items: list[Any]) -> tuple[Any, ...]:
    return tuple([_fixed(item) if isinstance(item, list) else item for item in items])
