"""The certifier: how many rows of a statement one person alters, and what each of its sums adds for one row.

Reads the parse tree of the text that will run; believes nobody who wrote it. By induction over the tree each relation
has columns with what they can hold, the number of its rows that one person can alter, and whether each row is one
person's. Every node that is not named here is refused.

Source: docs/theory/kernel.md; SR1, SR13, SR15.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sulq.kernel.facts import OWNER, Facts, Refused, Table
from sulq.kernel.numbers import EXACT, INTEGERS, NUMBERS, TEXT, Value, alike, hull, integer
from sulq.kernel.polynomials import Polynomial, constant
from sulq.kernel.tree import Node, parse
from sulq.kernel.values import Atoms, Expressions, cast

HUGE: Final = 2**126  # of a sum of integers, which DuckDB adds in 128 bits
MAX_ROWS: Final = 10**6  # of one person
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
_CAST: Final = ("class", "type", "child", "type_expr", "try_cast", "alias")
Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows: `altered` of them one person can add or remove, 0 where all are public; `most`: how many there are.

    `agreeing`: how many rows, of one person or of a public relation, can agree in some columns.
    `every`: whether each row of one kept table is here exactly once. `apart`: whether no row is made of several
    persons' rows, so that the rows of some persons and those of all others are together the rows of all.
    """

    columns: Mapping[str, Value]
    altered: int
    public: bool
    most: int
    agreeing: Callable[[Names], int]
    every: bool = False
    apart: bool = True

    def __post_init__(self) -> None:
        if self.altered > MAX_ROWS:
            raise Refused("one person could have too many rows")

    @property
    def owned(self) -> bool:
        """Whether each row is one person's, and says whose."""
        return any(value.type == "OWNER" for value in self.columns.values())


@dataclass(frozen=True, slots=True)
class Summand:
    """What one row adds to a sum: a polynomial in atoms, wherever none of those it needs is missing."""

    polynomial: Polynomial
    needs: frozenset[int] = frozenset()
    people: bool = False  # the number of different persons
    most: int = field(default=0, compare=False)  # the largest total, over as many rows as there can be


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known of a statement's result.

    `outputs`: for each column of the result a key, a summand, or None for the mark of the grouping set; of keys 0 and
    -0 are one, and which of them is shown is any row's. `sets`: the grouping sets, each the places of its keys among
    the outputs. `rows`: how many rows that are summed one person alters. `apart`: whether sums over the rows of some
    persons and of all others add up to those over all.
    """

    outputs: tuple[Value | Summand | None, ...]
    sets: tuple[tuple[int, ...], ...]
    rows: int
    public: bool
    every: bool
    intervals: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    missing: Mapping[int, bool] = field(default_factory=dict)
    apart: bool = False


def certify(sql: str, facts: Facts) -> Certificate:
    """What one person can do to the sums of a statement, from its text and public facts alone; Refused otherwise."""
    try:
        return _Certifier(facts).top(parse(sql))
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001 - what the kernel does not foresee it does not certify
        raise Refused(f"it cannot be read ({type(error).__name__})") from None


def rows(sql: str, facts: Facts) -> Relation:
    """The rows that a statement without sums gives, and how many of them one person can alter; Refused otherwise."""
    try:
        return _Certifier(facts).rows(parse(sql))
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001 - likewise
        raise Refused(f"it cannot be read ({type(error).__name__})") from None


class _Certifier:
    def __init__(self, facts: Facts) -> None:
        self.tables = {table.name: table for table in facts.tables}
        self.atoms = Atoms()

    # Relations

    def rows(self, node: Node) -> Relation:
        """The rows of a table, of a SELECT or of a union of some."""
        match node.get("type"):
            case "BASE_TABLE":
                return self._table(node)
            case "SUBQUERY":
                return self.rows(node.only("type", "subquery", "alias")["subquery"].only("node")["node"])
            case "SET_OPERATION_NODE":
                return self._union(node)
            case "SELECT_NODE":
                return self._grouped(node) if node.many("group_expressions") else self._select(node)
        raise Refused(f"a relation {node.get('type')}")

    def _table(self, node: Node) -> Relation:
        node.only("type", "table_name", "schema_name", "catalog_name", "qualified_name", "alias")
        table = self.tables.get(node["qualified_name"].only("path")["path"])
        if table is None:
            raise Refused("a table that is not kept here")
        columns = {name: self._anew(_stored(table, name)) for name, _ in table.columns}
        if table.owned:
            columns[OWNER] = Value("OWNER", null=False)
        public, unique = table.rows == 0, table.unique
        others = table.size if public else table.rows
        return Relation(columns, table.rows, public, table.size, lambda names: 1 if unique in names else others, True)

    def _anew(self, value: Value, **more: bool) -> Value:
        """A column of other rows than those its atoms are of; the person's stays."""
        if value.type == "OWNER":
            return value
        return self.atoms.of(replace(value, polynomial=None, needs=frozenset(), **more))  # type: ignore[arg-type]

    def _source(self, node: Node, *fields: str) -> tuple[Relation, Expressions]:
        """The rows a SELECT reads, and a reader of expressions over them; its condition is checked."""
        node.only("type", "select_list", "from_table", "aggregate_handling", "where_clause", *fields)
        if node["aggregate_handling"] != "STANDARD_HANDLING":
            raise Refused("GROUP BY ALL")
        tables = node["from_table"]
        if tables.get("type") == "JOIN":
            source = self._join(tables)
            names = {tuple(name.split(".")): name for name in source.columns}
        else:
            source = self.rows(tables)
            names = {(_name(tables["alias"]), name): name for name in source.columns} if tables.get("alias") else {}
            names |= {(name,): name for name in source.columns}
        read = Expressions(source.columns, names, self.atoms)
        if node.get("where_clause") is not None:
            read.truths(node["where_clause"])
            source = replace(source, every=False)
        return source, read

    def _select(self, node: Node) -> Relation:
        source, read = self._source(node, "modifiers")
        modifiers = [item.only("type")["type"] for item in node.many("modifiers")]
        if modifiers not in ([], ["DISTINCT_MODIFIER"]):
            raise Refused("an order or a limit")
        found: list[tuple[str, Value]] = []
        origins: dict[str, str] = {}  # of a column that is one of the source's, which
        for item in node.many("select_list"):
            if item.get("class") == "STAR":
                item.only("class", "type")
                found += source.columns.items()
                origins |= {name: name for name in source.columns}
            elif item.get("class") == "COLUMN_REF":
                found.append((_output(item), read.column(item)))
                origins[_output(item)] = read.origin(item)
            else:
                found.append((_output(item), read.value(item)))
        columns = _named(found)

        def agreeing(names: Names) -> int:
            return source.agreeing(frozenset(origins[name] for name in names if name in origins))

        if not modifiers:
            return replace(source, columns=columns, agreeing=agreeing)
        # No more of the different rows change than of all; whose they are is told by `o` alone.
        others = frozenset(columns) - {OWNER}
        columns = {name: self._anew(_merged(value)) for name, value in columns.items()}
        return Relation(
            columns,
            source.altered,
            source.public,
            source.most,
            lambda names: 1 if names >= others else agreeing(names),
            apart=False,
        )

    def _union(self, node: Node) -> Relation:
        node.only("type", "setop_type", "setop_all", "children")
        if node["setop_type"] != "UNION" or node.get("setop_all") is not True:
            raise Refused("a set operation other than UNION ALL")
        parts = [self.rows(child) for child in node.many("children")]
        if any(tuple(part.columns) != tuple(parts[0].columns) for part in parts):
            raise Refused("parts of a union with other columns")
        columns = {}
        for name, first in parts[0].columns.items():
            several = [part.columns[name] for part in parts]
            same = {value.type for value in several} == {"OWNER"}
            columns[name] = first if same else self._anew(hull(several))
        altered, most = sum(part.altered for part in parts), sum(part.most for part in parts)
        public = all(part.public for part in parts)
        return Relation(columns, altered, public, most, lambda _: most if public else altered, apart=False)

    def _join(self, node: Node) -> Relation:
        """Pairs of rows. Two private sides are joined by the person, so that a pair is one person's."""
        node.only("type", "left", "right", "condition", "join_type", "ref_type", "nearest_count", "nearest_order_type")
        if node["join_type"] not in ("INNER", "LEFT") or node["ref_type"] != "REGULAR":
            raise Refused(f"a join {node['join_type']} {node['ref_type']}")
        kept = node["join_type"] == "LEFT"  # a left row without a match is kept
        a, b = (_name(node[side].get("alias")) for side in ("left", "right"))
        left, right = self.rows(node["left"]), self.rows(node["right"])
        if a == b:
            raise Refused("two sides of one name")
        pairs = _pairs(node["condition"], {a: left, b: right})
        person = (OWNER, OWNER) in pairs and left.owned and right.owned
        if not left.public and not right.public and not person:
            raise Refused("private rows that are not joined by the person")
        if left.public and not right.public and kept:
            raise Refused("public rows that are kept where no private row agrees")
        columns = {f"{a}.{name}": value for name, value in left.columns.items()}
        for name, value in right.columns.items():
            if not kept:
                columns[f"{b}.{name}"] = value
            elif value.type != "OWNER":  # of a row without a match it is nobody's
                columns[f"{b}.{name}"] = self._anew(value, null=True)
        # A person's own rows are meant on both sides, so agreeing in `o` says no more.
        same = [(x, y) for x, y in pairs if _same(left.columns[x], right.columns[y])]
        ours, theirs = frozenset(x for x, _ in same), frozenset(y for _, y in same)

        def paired(lefts: int, rights: int) -> int:
            """How many pairs so many rows make: each left row as many as agree with it, or each right row."""
            found = []
            if right.public or not left.public:
                fan = right.agreeing(theirs)
                found.append(lefts * (max(fan, 1) if kept else fan))
            if not kept and (left.public or not right.public):
                found.append(rights * left.agreeing(ours))
            return min(found)

        altered, most = paired(left.altered, right.altered), paired(left.most, right.most)
        public = left.public and right.public

        def agreeing(names: Names) -> int:
            """Those of one side, and to each those of the other."""
            mine = frozenset(name.removeprefix(f"{a}.") for name in names if name.startswith(f"{a}."))
            yours = frozenset(name.removeprefix(f"{b}.") for name in names if name.startswith(f"{b}."))
            found = [most if public else altered, left.agreeing(mine) * max(right.agreeing(yours | theirs), 1)]
            if not kept or yours:
                found.append(right.agreeing(yours) * left.agreeing(mine | ours))
            return min(found)

        every = left.every and right.public and kept and right.agreeing(theirs) == 1
        return Relation(columns, altered, public, most, agreeing, every, apart=False)

    def _grouped(self, node: Node) -> Relation:
        """A person's own groups: one row, or one for each of the person's keys."""
        source, read = self._source(node, "group_expressions", "group_sets")
        grouped, items = node.many("group_expressions"), node.many("select_list")
        if node.get("group_sets") != (tuple(range(len(grouped))),):
            raise Refused("grouping sets within")
        keys = _keys(node, source, read)
        others = [item for item, value in keys.items() if value.type != "OWNER"]
        if len(others) == len(keys):
            raise Refused("groups that are not by the person")
        found = []
        for item in items:
            value = _merged(keys[item]) if item in keys else _within(item, source.altered, read)
            found.append((_output(item), self._anew(value)))
        altered, hidden = source.altered if others else 1, any(key not in items for key in keys)
        shown = frozenset(_output(item) for item in others if not hidden)
        agreeing: Callable[[Names], int] = lambda names: 1 if not hidden and names >= shown else altered  # noqa: E731
        return Relation(_named(found), altered, False, source.most, agreeing, apart=source.apart)

    # The outermost SELECT

    def top(self, node: Node) -> Certificate:
        """Sums by keys over a relation."""
        if node.get("type") != "SELECT_NODE":
            raise Refused("sums of a union")
        source, read = self._source(node, "group_expressions", "group_sets")
        grouped, items = node.many("group_expressions"), node.many("select_list")
        keys = _keys(node, source, read)
        if any(value.type == "OWNER" for value in keys.values()):
            raise Refused("sums by person")
        order = list(keys)
        shown = tuple(item for item in items if item in keys)
        outputs = tuple(keys[item] if item in keys else self._sum(item, source, read, shown) for item in items)
        sets = tuple(
            tuple(items.index(order[place]) if order[place] in items else -1 for place in each)
            for each in (node.get("group_sets") or ((),))
        )
        if len({frozenset(each) for each in sets}) != len(sets) or len(order) != len(grouped):
            raise Refused("a grouping set or a key that is given twice")
        if len(sets) > 1 and (any(-1 in each for each in sets) or None not in outputs):
            raise Refused("grouping sets that cannot be told apart")
        rows = max(source.altered, 1)  # public rows get noise like any other
        known = self.atoms.intervals, self.atoms.missing
        return Certificate(outputs, sets, rows, source.public, source.every, *known, source.apart)

    def _sum(
        self, item: Node, source: Relation, read: Expressions, keys: tuple[Node, ...], largest: int = HUGE
    ) -> Summand | None:
        """A sum, cast to 64 bits or as it is; None for the mark of a grouping set."""
        if item.get("type") == "GROUPING_FUNCTION":
            if item.only("class", "type", "children", "alias").many("children") != keys:
                raise Refused("the mark of other keys, or in another order")
            return None
        if item.get("class") == "CAST":
            if item.only(*_CAST)["type_expr"]["type_name"] != "BIGINT":
                raise Refused("a sum cast to another type than BIGINT")
            return self._sum(item["child"], source, read, keys, 2**63 - 1)
        name, argument = _aggregate(item)
        if argument is None:
            return Summand(constant(1), most=source.most)
        if name == "count DISTINCT":
            if read.column(argument).type != "OWNER":
                raise Refused("different values of what is not the person")
            return Summand({}, people=True, most=source.most)
        value = read.value(argument)
        if name == "count":
            if value.null and not value.needs:  # whether it is there is a number of its own
                value = self.atoms.of(integer("BIGINT", 1, 1), (self, argument))
            return Summand(constant(1), value.needs, most=source.most)
        if name != "sum" or value.polynomial is None:
            raise Refused(f"{name} of what is not whole and bounded")
        most = math.ceil(source.most * max(-value.low, value.high))
        if most > min(largest, EXACT if value.type == "DOUBLE" else HUGE):
            raise Refused("a sum that may leave the numbers that are added exactly")
        return Summand(value.polynomial, value.needs, most=most)


def _stored(table: Table, name: str) -> Value:
    column = dict(table.columns)[name]
    if column.type == "VARCHAR":
        if column.low is None or column.high is None:
            return replace(TEXT, null=column.missing)
        return replace(TEXT, low=column.low, high=column.high, null=column.missing)  # of digits
    if column.low is None or column.high is None or column.type not in NUMBERS:
        raise Refused(f"a stored column of type {column.type}")
    return integer(column.type, column.low, column.high, null=column.missing)


def _name(text: object) -> str:
    """A name as the generators write them; DuckDB does not tell upper case from lower."""
    if not isinstance(text, str) or not _NAME.match(text):
        raise Refused("a name of another form")
    return text


def _output(item: Node) -> str:
    """What a column of a SELECT is called."""
    return _name(item.get("alias") or item["column_names"][-1])


def _named(found: list[tuple[str, Value]]) -> dict[str, Value]:
    """Columns by their names: each name once, and `o` for the person alone; those of a join are not named anew."""
    columns = dict(found)
    if len(columns) != len(found) or any("." in name for name in columns):
        raise Refused("two columns of one name, or all columns of a join")
    if any((value.type == "OWNER") != (name == OWNER) for name, value in found):
        raise Refused("the person under another name, or another column under the person's")
    return columns


def _merged(value: Value) -> Value:
    """A value that stands for all equal ones: 0 and -0 are equal doubles, and yet differ in what is made of them."""
    if value.type == "DOUBLE":
        raise Refused("a double that stands for all that equal it")
    return value


def _same(left: Value, right: Value) -> bool:
    """Whether equality of two columns compares stored values: integers or one type, so that no cast merges any."""
    return left.type == right.type or {left.type, right.type} <= INTEGERS.keys()


def _pairs(node: Node, sides: Mapping[str, Relation]) -> list[tuple[str, str]]:
    """The columns a join compares, the left side's first; any other condition is refused but TRUE."""
    if node.get("type") == "CONJUNCTION_AND":
        return [pair for child in node.many("children") for pair in _pairs(child, sides)]
    if node.get("class") == "CONSTANT" and node["literal"].get("text") == "true":
        return []
    if node.get("type") != "COMPARE_EQUAL":
        raise Refused("a join by other than equal columns")
    node.only("class", "type", "left", "right")
    paths = [side.only("class", "type", "column_names")["column_names"] for side in (node["left"], node["right"])]
    found = dict(path for path in paths if len(path) == 2)
    if found.keys() != sides.keys() or any(found[name] not in side.columns for name, side in sides.items()):
        raise Refused("a join by what is not a column of each side")
    values = [side.columns[found[name]] for name, side in sides.items()]
    if {value.type for value in values} != {"OWNER"}:
        alike(values)
    first, second = (found[name] for name in sides)
    return [(first, second)]


def _keys(node: Node, source: Relation, read: Expressions) -> dict[Node, Value]:
    """The items of a SELECT it is grouped by, each with what it can be; a key that is not shown is there too."""
    aliases = {item.get("alias"): item for item in node.many("select_list") if item.get("alias")}
    columns = {name.rpartition(".")[2] for name in source.columns}  # DuckDB takes these before an alias
    found: dict[Node, Value] = {}
    for key in node.many("group_expressions"):
        path: tuple[str, ...] = key.get("column_names") or ()
        item = aliases.get(path[0], key) if len(path) == 1 else key
        if item is not key and path[0] in columns and item.get("column_names") != path:
            raise Refused("a name that is both a column and another's alias")
        found[item] = read.column(item) if item.get("class") == "COLUMN_REF" else read.value(item)
    return found


def _aggregate(node: Node) -> tuple[str, Node | None]:
    """Its name, and what it is of: one expression, or rows."""
    if node.get("class") != "FUNCTION":
        raise Refused("an output that is neither a key nor a sum")
    node.only("class", "type", "function_name", "arguments", "qualified_name", "alias", "distinct")
    name, arguments = node["function_name"], node.arguments()
    if node["qualified_name"].only("path")["path"] != (name,):
        raise Refused("a function of a schema")
    if len(arguments) != (name != "count_star") or (name == "count_star" and node.get("distinct")):
        raise Refused(f"{name} of none or several")
    return name + " DISTINCT" * bool(node.get("distinct")), arguments[0] if arguments else None


def _within(item: Node, rows: int, read: Expressions) -> Value:
    """An aggregate over at most so many rows of one person."""
    if item.get("class") == "CAST":
        return cast(item, _within(item.only(*_CAST)["child"], rows, read))
    name, argument = _aggregate(item)
    if argument is None:
        return integer("BIGINT", 1, rows, null=False)
    value = read.value(argument)
    if name in ("count", "count DISTINCT"):
        return integer("BIGINT", 0, rows, null=False)
    if name in ("min", "max"):
        return _merged(value)
    if name != "sum" or not (value.bounded and value.whole):
        raise Refused(f"{name} of a person's rows")
    low, high = min(value.low, value.low * rows), max(value.high, value.high * rows)
    if max(-low, high) >= (EXACT if value.type == "DOUBLE" else 2 ** INTEGERS["HUGEINT"]):
        raise Refused("a person's sum that is not exact")
    return integer("DOUBLE" if value.type == "DOUBLE" else "HUGEINT", low, high, null=value.null)
