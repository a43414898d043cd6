"""DuckDB's own parse tree of a statement, read strictly.

Equal parts of a statement become one object, so that whoever walks the tree may remember what was found of a part by
its identity. Fields with an empty value are left out; a field that a reader does not name is refused.
"""

from __future__ import annotations

import functools
import itertools
import json
from typing import Any, Final

import duckdb

from sulq.kernel.facts import Refused

MAX_TEXT_BYTES: Final = 2**22
MAX_DEPTH: Final = 400
_ORDER: Final = (("type", "ORDER_MODIFIER"),)


class Node:
    """One part of a statement."""

    __slots__ = ("_fields", "_refs")

    def __init__(self, fields: tuple[tuple[str, Any], ...]) -> None:
        self._fields = dict(fields)
        self._refs: frozenset[Node] | None = None

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a text, a number, a Node or a tuple of them
        if name not in self._fields:
            raise Refused(f"a part without {name}")
        return self._fields[name]

    def get(self, name: str) -> Any:  # noqa: ANN401
        """A field, None where it is empty."""
        return self._fields.get(name)

    def only(self, *names: str) -> Node:
        """Refuse fields beside these; returns itself."""
        beside = self._fields.keys() - set(names)
        if beside:
            raise Refused(f"{self.get('type')} with {min(beside)}")
        return self

    def many(self, name: str) -> tuple[Node, ...]:
        """The parts under a name; none where it is empty."""
        found = self._fields.get(name, ())
        if not isinstance(found, tuple) or not all(isinstance(item, Node) for item in found):
            raise Refused(f"{name} is no list of parts")
        return found

    def refs(self) -> frozenset[Node]:
        """The references to columns in it."""
        if self._refs is None:
            found = {self} if self.get("class") == "COLUMN_REF" else set()
            parts = itertools.chain.from_iterable(
                item if isinstance(item, tuple) else (item,) for item in self._fields.values()
            )
            self._refs = frozenset(found.union(*(part.refs() for part in parts if isinstance(part, Node))))
        return self._refs

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
        read = json.loads(found[0]) if found else {}
    except (duckdb.Error, ValueError, RecursionError):
        raise Refused("DuckDB does not parse it") from None
    finally:
        cursor.close()
    statements = read.get("statements", ())
    if read.get("error") is not False or len(statements) != 1:
        raise Refused("it is not one SELECT")
    known: dict[tuple[tuple[str, Any], ...], Node] = {}
    try:
        statement = _interned(statements[0], known, 0)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    node = statement.only("node", "named_param_map")["node"]
    if not isinstance(node, Node):
        raise Refused("it is not one SELECT")
    return node


@functools.cache
def _parser() -> duckdb.DuckDBPyConnection:
    """A database without rows."""
    return duckdb.connect(config={"threads": 1, "enable_external_access": False})


def _interned(value: Any, known: dict[tuple[tuple[str, Any], ...], Node], depth: int) -> Any:  # noqa: ANN401
    """A part as a Node, None where it says nothing; a list as a tuple."""
    if depth > MAX_DEPTH:
        raise Refused("it is nested too deeply")
    if isinstance(value, list):
        return tuple([_interned(item, known, depth + 1) for item in value])
    if not isinstance(value, dict):
        return value
    fields = []
    for name, given in value.items():
        if given is None or given is False or given in ("", []) or name.startswith("query_location"):
            continue
        item = _interned(given, known, depth + 1) if isinstance(given, (dict, list)) else given
        if item is not None:
            fields.append((name, item))
    found = tuple(fields)
    return None if not found or found == _ORDER else known.setdefault(found, Node(found))
