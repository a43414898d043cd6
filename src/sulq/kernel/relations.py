"""The certifier: how many rows of a statement one person alters, and what each of its sums adds for one row.

Reads the parse tree of the text that will run; believes nobody who wrote it. By induction over the tree each relation
has columns with what they can hold, the number of its rows that one person can alter, and whether each row is one
person's. Every node that is not named here is refused. Source: docs/theory/kernel.md; SR1, SR13, SR15.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from sulq.kernel.facts import INTEGERS, OWNER, Column, Facts, Refused, require
from sulq.kernel.tree import Node, parse
from sulq.kernel.values import EXACT, Atoms, Expressions, Interval, Polynomial, Value, alike, hull, integer

HUGE: Final = 2**126  # of a sum of integers, which DuckDB adds in 128 bits
MAX_ROWS: Final = 10**6  # of one person
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
Names = frozenset[str]
Agreeing = Callable[[Names], int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows: `private` where persons can add or remove some; `most`: how many there are.

    `agreeing`: how many rows, of one person or of a public relation, can agree in some columns; in none of them all do.
    `every`: whether each row of one kept table is here exactly once. `apart`: whether no row is made of several
    persons' rows: those of some persons and those of all others, each with all public rows, are the rows of all.
    """

    columns: Mapping[str, Value]
    private: bool
    most: int
    agreeing: Agreeing
    every: bool = False
    apart: bool = False

    @property
    def altered(self) -> int:
        """How many of the rows one person can add or remove."""
        found = self.agreeing(frozenset()) if self.private else 0
        require(found <= MAX_ROWS, "one person could have too many rows")
        return found


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
    persons and of all others add up to those over all. `tree`: the statement.
    """

    outputs: tuple[Value | Summand | None, ...]
    sets: tuple[tuple[int, ...], ...]
    rows: int
    every: bool
    apart: bool
    intervals: Mapping[int, Interval]
    tree: Node | None = field(default=None, compare=False)


def certify(sql: str, facts: Facts) -> Certificate:
    """What one person can do to the sums of a statement, from its text and public facts alone; Refused otherwise."""
    return _read(_Certifier(facts).top, sql)


def rows(sql: str, facts: Facts) -> Relation:
    """The rows that a statement without sums gives, and how many of them one person can alter; Refused otherwise."""
    return _read(_Certifier(facts).rows, sql)


def _read(rule: Callable[[Node], T], sql: str) -> T:
    try:
        return rule(parse(sql))
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001 - what the kernel does not foresee it does not certify
        raise Refused(f"it cannot be read ({type(error).__name__})") from None


class _Certifier:
    def __init__(self, facts: Facts) -> None:
        alone = facts.row_is_person and facts.neighbors != "zero_out"  # records of a source are whole persons then
        self.tables = {table.name: table for table in facts.tables if alone or not table.source}
        self.atoms = Atoms()

    def rows(self, node: Node) -> Relation:
        """The rows of a table, of a SELECT, or of a union or a join of some."""
        if node.get("type") == "SUBQUERY":
            return self.rows(node["subquery"]["node"])
        rules = {"BASE_TABLE": self._table, "JOIN": self._join, "SELECT_NODE": self._select}
        require(node.get("type") in {*rules, "SET_OPERATION_NODE"}, f"a relation {node.get('type')}")
        return rules.get(node["type"], self._union)(node)

    def _table(self, node: Node) -> Relation:
        path = node["qualified_name"]["path"]
        require(path in self.tables, "a table that is not kept here")
        table = self.tables[path]
        columns = {name: self._anew(_stored(column)) for name, column in table.columns}
        if table.owned:
            columns[OWNER] = Value("OWNER", null=False)
        agreeing: Agreeing = lambda names: 1 if table.unique in names else table.rows or table.size  # noqa: E731
        return Relation(columns, table.rows > 0, table.size, agreeing, every=True, apart=True)

    def _anew(self, value: Value) -> Value:
        """A column of other rows than those its atoms are of; the person's stays."""
        return value if value.type == "OWNER" else self.atoms.of(replace(value, polynomial=None, needs=frozenset()))

    def _source(self, node: Node) -> tuple[Relation, Expressions]:
        """The rows a SELECT reads, and a reader of expressions over them; its condition is checked."""
        require(node["aggregate_handling"] == "STANDARD_HANDLING", "GROUP BY ALL")
        tables = node["from_table"]
        source = self.rows(tables)
        names = {tuple(name.split(".")): (name, value) for name, value in source.columns.items()}
        if tables.get("alias"):
            names |= {(_output(tables), *path): column for path, column in names.items()}
        read = Expressions(names, self.atoms, {})
        if node.get("where_clause") is not None:
            read.condition(node["where_clause"])
            source = replace(source, every=False)
        return source, read

    def _select(self, node: Node) -> Relation:
        """One row for each of the source's, for all equal ones, or for all of a person's that have equal keys."""
        source, read = self._source(node)
        grouped, modifiers = node.get("group_sets") or node.get("group_expressions"), node.many("modifiers")
        require([item["type"] for item in modifiers] in ([], ["DISTINCT_MODIFIER"]), "an order or a limit")
        keys = _keys(node, source, read) if grouped else {}
        found: list[tuple[str, Value]] = []
        origins: dict[str, str] = {}  # of a column that is one of the source's, which
        for item in node.many("select_list"):
            if grouped and item not in keys:
                found.append((_output(item), _within(item, source.altered, read)))
            elif item.get("class") == "STAR":
                found += source.columns.items()
                origins |= {name: name for name in source.columns}
            elif item.get("class") == "COLUMN_REF":
                origins[_output(item)], value = read.column(item)
                found.append((_output(item), value))
            else:
                found.append((_output(item), read.value(item)))
        columns = _named(found)

        def agreeing(names: Names) -> int:
            return source.agreeing(frozenset(origins[name] for name in names if name in origins))

        if not grouped and not modifiers:
            return replace(source, columns=columns, agreeing=agreeing)
        merged = frozenset(map(_output, keys) if grouped else columns)
        own = OWNER in merged and node.get("group_sets") == (tuple(range(len(keys))),)
        require(own or not grouped, "groups that are not by the person, in several sets, or of a key given twice")
        # No more of the different rows change than of all, nor more groups than rows; `o` alone tells whose they are.
        zeros = any(columns[name].type in ("DOUBLE", "FLOAT") for name in merged)
        require(not zeros, "a double that stands for all that equal it: 0 and -0 do, and are not the same")
        columns = {name: self._anew(value) for name, value in columns.items()}
        different: Agreeing = lambda names: 1 if names >= merged - {OWNER} else agreeing(names)  # noqa: E731
        return Relation(columns, source.private, source.most, different, apart=bool(grouped) and source.apart)

    def _union(self, node: Node) -> Relation:
        require(node["setop_type"] == "UNION" and node.get("setop_all") is True, "a set operation other than UNION ALL")
        parts = [self.rows(child) for child in node.many("children")]
        names = tuple(parts[0].columns)
        require(all(tuple(part.columns) == names for part in parts), "parts of a union with other columns")
        columns = {}
        for name in names:
            several = [part.columns[name] for part in parts]
            columns[name] = several[0] if {each.type for each in several} == {"OWNER"} else self._anew(hull(*several))
        private, most = any(part.private for part in parts), sum(part.most for part in parts)
        altered, apart = sum(part.altered for part in parts), all(part.private and part.apart for part in parts)
        return Relation(columns, private, most, lambda _: altered if private else most, apart=apart)

    def _join(self, node: Node) -> Relation:
        """Pairs of rows. Two private sides are joined by the person, so that a pair is one person's."""
        how = (node["join_type"], node["ref_type"])
        require(how in (("INNER", "REGULAR"), ("LEFT", "REGULAR")), f"a join {how}")
        kept: bool = how[0] == "LEFT"  # a left row without a match is kept
        a, b = _output(node["left"]), _output(node["right"])
        left, right = self.rows(node["left"]), self.rows(node["right"])
        require(a != b, "two sides of one name")
        pairs = _pairs(node["condition"], {a: left.columns, b: right.columns})
        person = (OWNER, OWNER) in pairs and left.columns[OWNER].type == "OWNER"
        require(person or not (left.private and right.private), "private rows that are not joined by the person")
        require(not kept or left.private or not right.private, "public rows that are kept where no private row agrees")
        columns = {f"{a}.{name}": value for name, value in left.columns.items()}
        for name, value in right.columns.items():
            if not kept:
                columns[f"{b}.{name}"] = value
            elif value.type != "OWNER":  # of a row without a match it is nobody's
                columns[f"{b}.{name}"] = self._anew(replace(value, null=True))
        # Of one person both sides agree in `o` anyway. A cast may merge values: integers and one type need none.
        kinds = [(x, y, {left.columns[x].type, right.columns[y].type}) for x, y in pairs]
        same = [(x, y) for x, y, types in kinds if len(types) == 1 or types <= INTEGERS.keys()]
        ours, theirs = frozenset(x for x, _ in same), frozenset(y for _, y in same)

        @functools.cache  # each join asks each side twice
        def agreeing(names: Names) -> int:
            """Those of one side, and to each those of the other."""
            mine = frozenset(name for name in left.columns if f"{a}.{name}" in names)
            yours = frozenset(name for name in right.columns if f"{b}.{name}" in names)
            found = left.agreeing(mine) * max(right.agreeing(yours | theirs), kept)
            if kept and not yours:  # a left row without a match is there, too
                return found
            return min(found, right.agreeing(yours) * left.agreeing(mine | ours))

        # Of all persons' rows: to each of a side that is private if any is, those of the other.
        most = [left.most * max(right.agreeing(theirs), kept)] if left.private or not right.private else []
        most += [right.most * left.agreeing(ours)] if not kept and (right.private or not left.private) else []
        every = left.every and not right.private and kept and right.agreeing(theirs) == 1
        return Relation(columns, left.private or right.private, min(most), agreeing, every, left.apart and right.apart)

    # The outermost SELECT

    def top(self, node: Node) -> Certificate:
        """Sums by keys over a relation."""
        require(node.get("type") == "SELECT_NODE", "sums of a union")
        source, read = self._source(node)
        items, keys = node.many("select_list"), _keys(node, source, read)
        require(all(value.type != "OWNER" for value in keys.values()), "sums by person")
        shown = tuple(item for item in items if item in keys)
        outputs = tuple(keys[item] if item in keys else self._sum(item, source, read, shown) for item in items)
        places = [items.index(key) for key in keys]
        sets = tuple(tuple(places[i] for i in each) for each in node.get("group_sets") or ((),))
        require(len({frozenset(each) for each in sets}) == len(sets), "a grouping set that is given twice")
        require(len(keys) == len(node.many("group_expressions")), "a key that is given twice")
        require(len(sets) == 1 or None in outputs, "grouping sets that cannot be told apart")
        rows = max(source.altered, 1)  # public rows get noise like any other
        return Certificate(outputs, sets, rows, source.every, source.apart, self.atoms.intervals, node)

    def _sum(self, item: Node, source: Relation, read: Expressions, keys: tuple[Node, ...]) -> Summand | None:
        """A sum, cast to 64 bits or as it is; None for the mark of a grouping set."""
        if item.get("type") == "GROUPING_FUNCTION":
            require(item.many("children") == keys, "the mark of other keys, or in another order")
            return None
        cast = item.get("class") == "CAST"
        require(not cast or item["type_expr"]["type_name"] == "BIGINT", "a sum cast to another type than BIGINT")
        name, argument = _aggregate(item["child"] if cast else item)
        if argument is None:
            return Summand({(): 1}, most=source.most)
        if name == "count DISTINCT":
            require(read.column(argument)[1].type == "OWNER", "different values of what is not the person")
            return Summand({}, people=True, most=source.most)
        value = read.value(argument)
        if name == "count":
            if value.null and not value.needs:  # whether it is there is a number of its own
                value = self.atoms.of(integer("BIGINT", 1, 1), (self, argument))
            return Summand({(): 1}, value.needs, most=source.most)
        if name != "sum" or value.polynomial is None:
            raise Refused(f"{name} of what is not whole and bounded")
        most = math.ceil(source.most * max(-value.low, value.high))
        largest = EXACT if value.type == "DOUBLE" else 2**63 - 1 if cast else HUGE
        require(most <= largest, "a sum that may leave the numbers that are added exactly")
        return Summand(value.polynomial, value.needs, most=most)


def _stored(column: Column) -> Value:
    """A cell of a kept table, a whole number or a text, which may be the digits of one; or of a source."""
    found = Value(column.type, null=column.missing)
    if column.low is not None and column.high is not None:
        found = replace(found, low=column.low, high=column.high, whole=column.type != "VARCHAR")
    require(found.bounded or column.type not in (*INTEGERS, "TIMESTAMP"), f"a stored column of type {column.type}")
    return found


def _output(item: Node) -> str:
    """What a column or a table is called: by the names generators write; DuckDB does not tell upper case from lower."""
    name: str = item.get("alias") or item["column_names"][-1]
    require(_NAME.match(name), "a name of another form")
    return name


def _named(found: list[tuple[str, Value]]) -> dict[str, Value]:
    """Columns by their names: each name once, and `o` for the person alone; those of a join are not named anew."""
    columns = dict(found)
    require(len(columns) == len(found), "two columns of one name")
    require(not any("." in name for name in columns), "all columns of a join")
    persons = all((value.type == "OWNER") == (name == OWNER) for name, value in found)
    require(persons, "the person under another name, or another column under the person's")
    # A text that is a column is one that each row has, for DuckDB too: no pattern, no part of a date.
    return {name: value if value.text is None else replace(value, text=None) for name, value in columns.items()}


def _pairs(node: Node, sides: Mapping[str, Mapping[str, Value]]) -> list[tuple[str, str]]:
    """The columns a join compares, the left side's first; any other condition is refused but TRUE."""
    if node.get("type") == "CONJUNCTION_AND":
        return [pair for child in node.many("children") for pair in _pairs(child, sides)]
    if node.get("class") == "CONSTANT" and node["literal"].get("text") == "true":
        return []
    require(node.get("type") == "COMPARE_EQUAL", "a join by other than equal columns")
    (a, ours), (b, theirs) = (node[side]["column_names"] for side in ("left", "right"))
    require([a, b] == list(sides) and ours in sides[a] and theirs in sides[b], "a join by no column of each side")
    if {sides[a][ours].type, sides[b][theirs].type} != {"OWNER"}:
        alike(sides[a][ours], sides[b][theirs])
    return [(ours, theirs)]


def _keys(node: Node, source: Relation, read: Expressions) -> dict[Node, Value]:
    """The items of a SELECT it is grouped by, each with what it can be; all are shown, and called by their names."""
    require(not node.get("modifiers"), "an order or a limit of groups, or different ones")
    items = {_output(item): item for item in node.many("select_list") if item.get("alias") or item.get("column_names")}
    columns = {name.rpartition(".")[2] for name in source.columns}  # DuckDB takes these before an alias
    found: dict[Node, Value] = {}
    for key in node.many("group_expressions"):
        (name,) = path = key["column_names"]
        own = name in items and (name not in columns or items[name].get("column_names") == path)
        require(own, "a key that is not shown, or a name that is both a column and another's alias")
        item = items[name]
        found[item] = read.column(item)[1] if item.get("class") == "COLUMN_REF" else read.value(item)
    return found


def _aggregate(node: Node) -> tuple[str, Node | None]:
    """Its name, and what it is of: one expression, or rows."""
    require(node.get("class") == "FUNCTION", "an output that is neither a key nor a sum")
    name, arguments = node.call()
    require(len(arguments) == (name != "count_star"), f"{name} of none or several")
    return name, arguments[0] if arguments else None


def _within(item: Node, rows: int, read: Expressions) -> Value:
    """An aggregate over at most so many rows of one person."""
    name, argument = _aggregate(item)
    if argument is None:
        return integer("BIGINT", 1, rows, null=False)
    value = read.value(argument)
    if name in ("count", "count DISTINCT"):
        return integer("BIGINT", 0, rows, null=False)
    if name in ("min", "max"):
        require(value.type not in ("DOUBLE", "FLOAT"), "a double that stands for all that equal it")
        return value
    found = integer("DOUBLE", min(value.low, value.low * rows), max(value.high, value.high * rows), null=value.null)
    exact = value.type == "DOUBLE" and value.whole and found.fits("DOUBLE")
    require(name == "sum" and exact, f"{name} of a person's rows that is not exact")
    return found
