"""The certifier: how many rows of a statement one person alters, and what each of its sums adds for one row.

Reads the parse tree of the text that will run; believes nobody who wrote it. By induction over the tree each relation
has columns with what they can hold, the number of its rows that one person can alter, and whether each row is one
person's. Every node that is not named here is refused.

Source: docs/theory/kernel.md; SR1, SR13, SR15.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from sulq.kernel.facts import OWNER, Facts, Refused, Table
from sulq.kernel.numbers import EXACT, INTEGERS, Value, alike, hull
from sulq.kernel.polynomials import Polynomial, constant
from sulq.kernel.tree import Node, parse
from sulq.kernel.values import Atoms, Expressions, cast

MAX_ROWS: Final = 10**6  # of one person
LARGEST: Final = 2**63 - 1  # of a sum that is cast to BIGINT
HUGE: Final = 2**126  # of a sum of integers, which DuckDB adds in 128 bits
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
_SELECT: Final = ("type", "select_list", "from_table", "aggregate_handling", "where_clause")
_CALL: Final = ("class", "type", "function_name", "arguments", "qualified_name", "alias", "distinct")
Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows: `altered` of them one person can add or remove, 0 where all are public; `most`: how many there are.

    `agreeing`: how many rows, of one person or of a public relation, can agree in some columns; None: not known.
    `every`: whether each row of one kept table is here exactly once.
    """

    columns: Mapping[str, Value]
    altered: int
    public: bool
    most: int
    agreeing: Callable[[Names], int | None]
    every: bool

    @property
    def owned(self) -> bool:
        """Whether each row is one person's, and says whose."""
        return OWNER in self.columns and self.columns[OWNER].type == "OWNER"


@dataclass(frozen=True, slots=True)
class Summand:
    """What one row adds to a sum: a polynomial in atoms, wherever none of those it needs is missing."""

    polynomial: Polynomial
    needs: frozenset[int] = frozenset()
    people: bool = False  # the number of different persons


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known of a statement's result.

    `outputs`: for each column of the result a key, a summand, or the mark of the grouping set. `sets`: the grouping
    sets, each the places of its keys among the outputs. `rows`: how many rows that are summed one person alters.
    """

    outputs: tuple[Value | Summand | None, ...]
    sets: tuple[tuple[int, ...], ...]
    rows: int
    public: bool
    every: bool
    intervals: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    missing: Mapping[int, bool] = field(default_factory=dict)


def certify(sql: str, facts: Facts) -> Certificate:
    """What one person can do to the sums of a statement, from its text and public facts alone; Refused otherwise."""
    try:
        return _Certifier(facts).top(parse(sql))
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001 - what the kernel does not foresee it does not certify
        raise Refused(f"it cannot be read ({type(error).__name__})") from None


class _Certifier:
    def __init__(self, facts: Facts) -> None:
        self.tables = {table.name: table for table in facts.tables}
        self.atoms = Atoms()

    # Relations

    def relation(self, node: Node) -> Relation:
        """What stands after FROM, or a SELECT within it."""
        match node.get("type"):
            case "BASE_TABLE":
                return self._table(node)
            case "SUBQUERY":
                return self.query(node.only("type", "subquery", "alias")["subquery"].only("node")["node"])
            case "SELECT_NODE":
                return self.query(node)
        raise Refused(f"a relation {node.get('type')}")

    def query(self, node: Node) -> Relation:
        """A SELECT or a union of some."""
        if node.get("type") == "SET_OPERATION_NODE":
            node.only("type", "setop_type", "setop_all", "children")
            if node["setop_type"] != "UNION" or node.get("setop_all") is not True:
                raise Refused("a set operation other than UNION ALL")
            return self._union([self.query(child) for child in node.many("children")])
        if node.get("type") != "SELECT_NODE":
            raise Refused(f"a query {node.get('type')}")
        node.only(*_SELECT, "modifiers", "group_expressions", "group_sets")
        if node.many("group_expressions"):
            return self._grouped(node)
        source, read = self._source(node)
        columns, origins = self._columns(node, source, read)
        found = replace(
            source,
            columns=columns,
            agreeing=lambda names: source.agreeing(frozenset(origins[name] for name in names if name in origins)),
            every=source.every and node.get("where_clause") is None,
        )
        return self._distinct(found) if self._modified(node) else found

    def _modified(self, node: Node) -> bool:
        modifiers = node.many("modifiers")
        if any(item.only("type")["type"] != "DISTINCT_MODIFIER" for item in modifiers):
            raise Refused("an order or a limit")
        return bool(modifiers)

    def _distinct(self, source: Relation) -> Relation:
        """Different rows: no more of them change than of all rows; whose they are is told by `o` alone."""
        for value in source.columns.values():
            _merged(value)
        every = frozenset(source.columns) - {OWNER}
        columns = {name: self._anew(value) for name, value in source.columns.items()}
        return replace(
            source,
            columns=columns,
            agreeing=lambda names: 1 if names >= every else source.agreeing(names),
            every=False,
        )

    def _anew(self, value: Value, **more: bool) -> Value:
        """A column of other rows than those its atoms are of."""
        value = replace(value, polynomial=None, needs=frozenset(), **more)  # type: ignore[arg-type]
        return self.atoms.of(value)

    def _table(self, node: Node) -> Relation:
        node.only("type", "table_name", "schema_name", "catalog_name", "qualified_name", "alias")
        table = self.tables.get(tuple(node["qualified_name"].only("path")["path"]))
        if table is None:
            raise Refused("a table that is not kept here")
        columns = {name: self._anew(_stored(table, name)) for name, _ in table.columns}
        if table.owned:
            columns[OWNER] = Value("OWNER", null=False)
        public = table.rows == 0
        others = table.size if public else table.rows
        return Relation(
            columns,
            table.rows,
            public,
            table.size,
            lambda names: 1 if table.unique in names else others,
            every=True,
        )

    def _source(self, node: Node) -> tuple[Relation, Expressions]:
        """The rows a SELECT reads, and a reader of expressions over them; its condition is checked."""
        if node["aggregate_handling"] != "STANDARD_HANDLING":
            raise Refused("GROUP BY ALL")
        tables = node["from_table"]
        if tables.get("type") == "JOIN":
            source, names = self._join(tables)
        else:
            source = self.relation(tables)
            names = {(_name(tables.get("alias")), name): name for name in source.columns} if tables.get("alias") else {}
            names |= {(name,): name for name in source.columns}
        read = Expressions(source.columns, names, self.atoms)
        if node.get("where_clause") is not None:
            read.truth(node["where_clause"])
        return source, read

    def _columns(self, node: Node, source: Relation, read: Expressions) -> tuple[dict[str, Value], dict[str, str]]:
        """The columns of a SELECT, and of those that are a source's column which one."""
        found: list[tuple[str, Value, str | None]] = []
        for item in node.many("select_list"):
            if item.get("class") == "STAR":
                item.only("class", "type")
                if any("." in name for name in source.columns):
                    raise Refused("all columns of a join")
                found += [(name, value, name) for name, value in source.columns.items()]
            elif item.get("class") == "COLUMN_REF":
                name = _name(item["column_names"][-1])
                found.append((_name(item.get("alias") or name), read.column(item), read.origin(item)))
            else:
                found.append((_name(item["alias"]), read.value(item), None))
        names = [name for name, _, _ in found]
        if len(set(names)) != len(names):
            raise Refused("two columns of one name")
        if any((value.type == "OWNER") != (name == OWNER) for name, value, _ in found):
            raise Refused("the person under another name, or another column under the person's")
        return {name: value for name, value, _ in found}, {name: origin for name, _, origin in found if origin}

    def _union(self, parts: list[Relation]) -> Relation:
        first = parts[0]
        if any(tuple(part.columns) != tuple(first.columns) for part in parts):
            raise Refused("parts of a union with other columns")
        columns = {}
        for name in first.columns:
            several = [part.columns[name] for part in parts]
            if len({value.type for value in several}) > 1:
                alike(several)
            one = first.columns[name] if several[0].type == "OWNER" else self._anew(hull(several))
            columns[name] = one
        altered, most = sum(part.altered for part in parts), sum(part.most for part in parts)
        public = all(part.public for part in parts)
        return Relation(columns, _few(altered), public, most, lambda _: None, every=False)

    def _join(self, node: Node) -> tuple[Relation, dict[tuple[str, ...], str]]:
        """Pairs of rows. Two private sides are joined by the person, so that a pair is one person's."""
        node.only("type", "left", "right", "condition", "join_type", "ref_type", "nearest_count", "nearest_order_type")
        if node["join_type"] not in ("INNER", "LEFT") or node["ref_type"] != "REGULAR":
            raise Refused(f"a join {node['join_type']} {node['ref_type']}")
        kept = node["join_type"] == "LEFT"
        sides = [(_name(node[side].get("alias")), self.relation(node[side])) for side in ("left", "right")]
        (a, left), (b, right) = sides
        if a == b:
            raise Refused("two sides of one name")
        pairs = _pairs(node["condition"], {a: left, b: right}, a)
        person = (OWNER, OWNER) in pairs
        if not left.public and not right.public and not (person and left.owned and right.owned):
            raise Refused("private rows that are not joined by the person")
        if left.public and not right.public and kept:
            raise Refused("public rows that are kept where no private row agrees")
        # A person's own rows are meant on both sides, so agreeing in `o` says no more.
        ours = frozenset(x for x, y in pairs if _same(left, x, right, y))
        theirs = frozenset(y for x, y in pairs if _same(left, x, right, y))
        fans = left.agreeing(ours), right.agreeing(theirs)
        columns: dict[str, Value] = {}
        for name, side in sides:
            for inner, value in side.columns.items():
                columns[f"{name}.{inner}"] = self._anew(value, null=True) if kept and side is right else value
        if kept and f"{b}.{OWNER}" in columns:
            del columns[f"{b}.{OWNER}"]  # of a row without a match it is nobody's
        names = {tuple(place.split(".")): place for place in columns}
        owner = next((place for place in (f"{a}.{OWNER}", f"{b}.{OWNER}") if place in columns), None)
        if owner is not None:
            columns[OWNER] = columns[owner]
        found = Relation(
            columns,
            _few(_paired(left, right, fans, (left.altered, right.altered), kept=kept)),
            left.public and right.public,
            _paired(left, right, fans, (left.most, right.most), kept=kept),
            self._agreeing((a, left), (b, right), (ours, theirs), kept=kept),
            every=left.every and right.public and kept and fans[1] == 1,
        )
        return found, names

    @staticmethod
    def _agreeing(
        a: tuple[str, Relation], b: tuple[str, Relation], on: tuple[Names, Names], *, kept: bool
    ) -> Callable[[Names], int | None]:
        """Rows of a join that agree in some columns: those of one side, and to each those of the other."""

        def agreeing(names: Names) -> int | None:
            ours = frozenset(name[len(a[0]) + 1 :] for name in names if name.startswith(f"{a[0]}."))
            theirs = frozenset(name[len(b[0]) + 1 :] for name in names if name.startswith(f"{b[0]}."))
            found = []
            first, then = a[1].agreeing(ours), b[1].agreeing(theirs | on[1])
            if first is not None and then is not None:
                found.append(first * (max(then, 1) if kept else then))
            if not kept or theirs:
                first, then = b[1].agreeing(theirs), a[1].agreeing(ours | on[0])
                if first is not None and then is not None:
                    found.append(first * then)
            return min(found, default=None)

        return agreeing

    def _grouped(self, node: Node) -> Relation:
        """A person's own groups: one row, or one for each of the person's keys."""
        source, read = self._source(node)
        if node.many("modifiers") or not source.owned:
            raise Refused("groups of rows that are no one person's")
        grouped = node.many("group_expressions")
        if node.get("group_sets") != (tuple(range(len(grouped))),):
            raise Refused("grouping sets within")
        items = node.many("select_list")
        keys = self._keys(grouped, items, source, read)
        columns: dict[str, Value] = {}
        for item in items:
            name = _name(item.get("alias") or item["column_names"][-1])
            if name in columns:
                raise Refused("two columns of one name")
            if item in keys:
                columns[name] = self._anew(_merged(keys[item])) if keys[item].type != "OWNER" else keys[item]
            else:
                columns[name] = self._anew(self._within(item, source.altered, read))
            if (columns[name].type == "OWNER") != (name == OWNER):
                raise Refused("the person under another name, or another column under the person's")
        if not any(value.type == "OWNER" for value in keys.values()):
            raise Refused("groups that are not by the person")
        alone = all(value.type == "OWNER" for value in keys.values())
        shown = frozenset(_name(item.get("alias") or item["column_names"][-1]) for item in items if item in keys)
        hidden = any(key not in items for key in keys)
        return Relation(
            columns,
            1 if alone else source.altered,
            public=False,
            most=source.most,
            agreeing=lambda names: 1 if not hidden and names >= shown - {OWNER} else None,
            every=False,
        )

    def _keys(
        self, grouped: tuple[Node, ...], items: tuple[Node, ...], source: Relation, read: Expressions
    ) -> dict[Node, Value]:
        """The items of a SELECT it is grouped by, each with what it can be; a key that is not shown is there too."""
        aliases = {item.get("alias"): item for item in items if item.get("alias")}
        found: dict[Node, Value] = {}
        for key in grouped:
            item = key
            if key.get("class") == "COLUMN_REF" and len(key["column_names"]) == 1 and key["column_names"][0] in aliases:
                item = aliases[key["column_names"][0]]
                hidden = {name.rpartition(".")[2] for name in source.columns}
                if key["column_names"][0] in hidden and not _refers(item, key):
                    raise Refused("a name that is both a column and another's alias")
            found[item] = read.column(item) if item.get("class") == "COLUMN_REF" else read.value(item)
        return found

    def _within(self, item: Node, rows: int, read: Expressions) -> Value:
        """An aggregate over at most so many rows of one person."""
        item.only("class", "type", "child", "type_expr", *_CALL)
        if item.get("class") == "CAST":
            return cast(item, self._within(item["child"], rows, read))
        name, arguments = _call(item)
        if name == "count_star" and not arguments:
            return Value("BIGINT", Fraction(1), Fraction(rows), whole=True, null=False)
        if len(arguments) != 1:
            raise Refused(f"{name} of several")
        value = read.value(arguments[0])
        if name == "count":
            return Value("BIGINT", Fraction(0), Fraction(rows), whole=True, null=False)
        if item.get("distinct"):
            raise Refused(f"{name} of different values")
        if name in ("min", "max"):
            return replace(_merged(value), polynomial=None, needs=frozenset())
        if name != "sum" or not value.bounded or value.low is None or value.high is None:
            raise Refused(f"{name} of a person's rows")
        low, high = min(value.low, value.low * rows), max(value.high, value.high * rows)
        whole = value.whole and (value.type != "DOUBLE" or max(-low, high) < EXACT)
        if not whole or max(-low, high) >= 2 ** INTEGERS["HUGEINT"]:
            raise Refused("a person's sum that is not exact")
        return Value("DOUBLE" if value.type == "DOUBLE" else "HUGEINT", low, high, whole=True, null=value.null)

    # The outermost SELECT

    def top(self, node: Node) -> Certificate:
        """Sums by keys over a relation."""
        if node.get("type") != "SELECT_NODE":
            raise Refused("sums of a union")
        node.only(*_SELECT, "group_expressions", "group_sets")
        source, read = self._source(node)
        grouped, items = node.many("group_expressions"), node.many("select_list")
        keys = self._keys(grouped, items, source, read)
        if any(value.type == "OWNER" for value in keys.values()):
            raise Refused("sums by person")
        if any(item not in keys and not _is_sum(item) for item in items):
            raise Refused("an output that is neither a key nor a sum")
        order = list(keys)
        outputs = tuple(keys[item] if item in keys else self._sum(item, source, read, grouped) for item in items)
        sets = tuple(
            tuple(items.index(order[place]) if order[place] in items else -1 for place in each)
            for each in (node.get("group_sets") or ((),))
        )
        if len({frozenset(each) for each in sets}) != len(sets) or len(order) != len(grouped):
            raise Refused("a grouping set or a key that is given twice")
        if len(sets) > 1 and (any(-1 in each for each in sets) or None not in outputs):
            raise Refused("grouping sets that cannot be told apart")
        every = source.every and node.get("where_clause") is None
        rows = max(source.altered, 1)  # public rows get noise like any other
        atoms = self.atoms
        return Certificate(outputs, sets, rows, source.public, every, atoms.intervals, atoms.missing)

    def _sum(
        self, item: Node, source: Relation, read: Expressions, grouped: tuple[Node, ...], limit: int = HUGE
    ) -> Summand | None:
        """A sum, cast to 64 bits or as it is; None for the mark of a grouping set."""
        if item.get("type") == "GROUPING_FUNCTION":
            if item.only("class", "type", "children", "alias").many("children") != grouped:
                raise Refused("the mark of other keys")
            return None
        if item.get("class") == "CAST":
            item.only("class", "type", "child", "type_expr", "try_cast", "alias")
            if item["type_expr"]["type_name"] != "BIGINT":
                raise Refused("a sum cast to another type than BIGINT")
            return self._sum(item["child"], source, read, grouped, LARGEST)
        name, arguments = _call(item)
        if name == "count_star" and not arguments:
            return Summand(constant(1))
        if len(arguments) != 1 or name not in ("count", "sum"):
            raise Refused(f"{name} as a sum")
        if item.get("distinct"):
            if name != "count" or not source.owned or read.column(arguments[0]).type != "OWNER":
                raise Refused("different values of what is not the person")
            return Summand({}, people=True)
        value = read.value(arguments[0])
        if name == "count":
            if value.null and not value.needs:  # whether it is there is a number of its own
                value = self.atoms.of(Value("BIGINT", Fraction(1), Fraction(1), whole=True), (self, arguments[0]))
            return Summand(constant(1), value.needs)
        if value.polynomial is None or value.low is None or value.high is None:
            raise Refused("a sum of what is not whole and bounded")
        most = source.most * max(-value.low, value.high)
        if most > min(limit, EXACT if value.type == "DOUBLE" else HUGE):
            raise Refused("a sum that may leave the numbers that are added exactly")
        return Summand(value.polynomial, value.needs)


def _stored(table: Table, name: str) -> Value:
    column = dict(table.columns)[name]
    if column.type == "VARCHAR":  # of digits, where it has ends
        low, high = (None if end is None else Fraction(end) for end in (column.low, column.high))
        return Value("VARCHAR", low, high, null=column.missing)
    if column.low is None or column.high is None or column.type not in (*INTEGERS, "DOUBLE"):
        raise Refused(f"a stored column of type {column.type}")
    return Value(column.type, Fraction(column.low), Fraction(column.high), whole=True, null=column.missing)


def _name(text: object) -> str:
    """A name as the generators write them; DuckDB does not tell upper case from lower."""
    if not isinstance(text, str) or not _NAME.match(text):
        raise Refused("a name of another form")
    return text


def _merged(value: Value) -> Value:
    """A value that stands for all equal ones: of doubles, 0 and -0 are equal and yet differ in what is made of them."""
    if value.type == "DOUBLE":
        raise Refused("a double that stands for all that equal it")
    return value


def _refers(item: Node, key: Node) -> bool:
    return bool(item.get("class") == "COLUMN_REF" and item["column_names"] == key["column_names"])


def _same(left: Relation, ours: str, right: Relation, theirs: str) -> bool:
    """Whether equality of two columns compares stored values: integers or one type, so that no cast merges any."""
    types = {left.columns[ours].type, right.columns[theirs].type}
    return len(types) == 1 or types <= INTEGERS.keys()


def _pairs(node: Node, sides: Mapping[str, Relation], first: str) -> list[tuple[str, str]]:
    """The columns a join compares, the left side's first; any other condition is refused but TRUE."""
    if node.get("type") == "CONJUNCTION_AND":
        return [pair for child in node.many("children") for pair in _pairs(child, sides, first)]
    if node.get("class") == "CONSTANT" and node["literal"].get("text") == "true":
        return []
    if node.get("type") != "COMPARE_EQUAL":
        raise Refused("a join by other than equal columns")
    node.only("class", "type", "left", "right")
    found = {}
    for side in (node["left"], node["right"]):
        path = side.only("class", "type", "column_names")["column_names"]
        if len(path) != 2 or path[0] not in sides or path[1] not in sides[path[0]].columns:
            raise Refused("a join by what is no column of a side")
        found[path[0]] = path[1]
    if len(found) != 2:
        raise Refused("a join of a side with itself")
    (theirs,) = (found[name] for name in sides if name != first)
    values = [sides[name].columns[column] for name, column in found.items()]
    if {value.type for value in values} != {"OWNER"}:
        alike(values)
    return [(found[first], theirs)]


def _paired(
    left: Relation, right: Relation, fans: tuple[int | None, int | None], rows: tuple[int, int], *, kept: bool
) -> int:
    """How many pairs so many rows of each side make: each left row as many as agree with it, or each right row."""
    ours, theirs = fans
    if left.public != right.public:
        fan = theirs if right.public else ours
        if fan is None:
            raise Refused("a join with public rows that has no bound")
        return rows[left.public] * (max(fan, 1) if kept else fan)
    theirs = right.altered if theirs is None and not right.public else theirs
    ours = left.altered if ours is None and not left.public else ours
    if left.public:
        return rows[0] * max(right.most if theirs is None else theirs, 1)
    if theirs is None or ours is None:
        raise Refused("a join that has no bound")
    theirs = min(theirs, right.altered)
    return rows[0] * max(theirs, 1) if kept else min(rows[0] * theirs, rows[1] * ours)


def _call(node: Node) -> tuple[str, tuple[Node, ...]]:
    if node.get("class") != "FUNCTION":
        raise Refused("an output that is neither a key nor a sum")
    node.only(*_CALL)
    if node["qualified_name"].only("path")["path"] != (node["function_name"],):
        raise Refused("a function of a schema")
    return node["function_name"], node.arguments()


def _is_sum(node: Node) -> bool:
    return node.get("class") in ("FUNCTION", "CAST") or node.get("type") == "GROUPING_FUNCTION"


def _few(rows: int) -> int:
    if rows > MAX_ROWS:
        raise Refused("one person could have too many rows")
    return rows
