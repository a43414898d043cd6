"""Row functions that put each row into one of finitely many public cells, or none: keys, labels, trees of keys."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema, Text
from sulq.language.kinds import Cells, Code, Frame, Integers, Scalar, Truth, entry, union
from sulq.language.rowfn.base import (
    Col,
    Literal,
    RowFn,
    check,
    condition,
    describe,
    evaluate,
    is_whole,
    known,
    literal,
    literals,
    numbers,
    per_schema,
    truths,
)
from sulq.language.rowfn.conditions import against

PRIME: Final = 2**31 - 1
HALF: Final = 2**30
MAX_LABELS: Final = 2**20
MAX_CACHED: Final = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Each(RowFn, item="The item"):
    """Every whole value of a bounded number, or both truth values, as a key."""

    item: RowFn

    @per_schema
    def kind(self, schema: Schema) -> Code:
        inner = self.item.kind(schema)
        if isinstance(inner, Truth):
            return Code((False, True), inner.nullable)
        if isinstance(inner, Code):
            return inner
        if not isinstance(inner, Scalar) or inner.lo is None or inner.hi is None:
            raise QuestionError("wrong-kind", f"{describe(self.item)} cannot be a key; use bins(...).")
        if inner.step is None or inner.step < 1:
            raise QuestionError("wrong-kind", f"{describe(self.item)} is not whole; use bins(...).")
        low, high = math.ceil(inner.lo), math.floor(inner.hi)
        if high - low >= MAX_LABELS:
            raise QuestionError("too-large", f"{describe(self.item)} has too many values for a key; use bins(...).")
        return Code(tuple(range(low, high + 1)), inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        inner = self.item.kind(frame.schema)
        if isinstance(inner, Code):
            return evaluate(self.item, frame)
        low = math.ceil(inner.lo) if isinstance(inner, Scalar) and inner.lo is not None else 0
        column = frame.schema.find(self.item.name) if isinstance(self.item, Col) else None
        if isinstance(self.item, Col) and column is not None and not isinstance(column, Text) and column.step == 1:
            codes = frame.codes(self.item.name)  # whole to begin with
            units = codes.values.astype(np.int64, copy=False)
            return Cells(units - low if low else units, codes.missing)
        values, missing = numbers(self.item, frame)
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            return Cells((values - low).astype(np.int64), missing)


@dataclass(frozen=True, slots=True, eq=False)
class Bins(RowFn, item="The item", edges=literals):
    """The half-open interval [edge, next edge) a number falls into; the last one is closed."""

    item: RowFn
    edges: tuple[float | int | str, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MAX_LABELS:
            raise QuestionError("bad-literal", "Bins need at least two edges, and not too many.")
        RowFn.__post_init__(self)

    def fitted(self, schema: Schema) -> list[float]:
        """The edges as they meet the cells."""
        return self._fitted(schema)[0]

    @per_schema
    def _fitted(self, schema: Schema) -> tuple[list[float], Code]:
        inner = self.item.kind(schema)
        if not isinstance(inner, Scalar):
            raise QuestionError("wrong-kind", f"{describe(self.item)} is not a number and has no bins.")
        edges = [float(against(edge, inner)) for edge in self.edges]
        if any(a >= b for a, b in itertools.pairwise(edges)):
            raise QuestionError("bad-literal", "The edges of bins must increase.")
        covered = inner.lo is not None and inner.hi is not None and edges[0] <= inner.lo and inner.hi <= edges[-1]
        return edges, Code(tuple(itertools.pairwise(self.edges)), inner.nullable or not covered)

    def kind(self, schema: Schema) -> Code:
        return self._fitted(schema)[1]

    def cells(self, frame: Frame) -> Cells:
        edges = np.array(self.fitted(frame.schema))
        values, missing = numbers(self.item, frame)
        index = np.searchsorted(edges, values, side="right") - 1
        index = np.where(values == edges[-1], len(edges) - 2, index)
        outside = (index < 0) | (index > len(edges) - 2)
        return Cells(index.astype(np.int64), union(outside, missing))


@functools.lru_cache(maxsize=1024)
def mixing(salt: int) -> tuple[int, int, int]:
    """Public multipliers of the bucket hash for a salt."""
    seed = hashlib.sha256(f"sulq bucket {salt}".encode()).digest()
    a, b, c = (int.from_bytes(seed[i : i + 8], "big") % (PRIME - 1) + 1 for i in (0, 8, 16))
    return a, b, c


@dataclass(frozen=True, slots=True, eq=False)
class Bucket(RowFn):
    """A public hash of the person modulo `parts`: all rows of a person together (SR11).

    With h = 2^30 u + v the person's hash, the bucket is ((a u + b v + c) mod p)
    mod parts, p = 2^31 - 1: pairwise independent over salts, and plain 64-bit
    integer arithmetic on every engine.
    """

    count: int
    salt: int = 0

    def __post_init__(self) -> None:
        if not is_whole(self.count, 1, MAX_LABELS):
            raise QuestionError("bad-literal", "A bucket needs 1 to 2^20 parts.")
        if not is_whole(self.salt, -(2**53), 2**53):
            raise QuestionError("bad-literal", "A salt is a whole number.")

    def kind(self, schema: Schema) -> Code:
        return Code(tuple(range(self.count)), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        a, b, c = mixing(self.salt)
        person = frame.person()
        return Cells((a * (person // HALF) + b * (person % HALF) + c) % PRIME % self.count, None)


MAX_BRANCHES: Final = 10_000


def code(fn: RowFn, schema: Schema) -> Code:
    """The kind of a row function used as a key."""
    kind = fn.kind(schema)
    if not isinstance(kind, Code):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a key.")
    return kind


@dataclass(frozen=True, slots=True, eq=False)
class Choice(RowFn, labels=literals):
    """The label of the first condition that holds, else that of `otherwise`; None is missing.

    A case whose results are all constants: it puts each row into one public cell.
    """

    branches: tuple[tuple[RowFn, int | None], ...]
    labels: tuple[int | float | str | bool, ...]
    otherwise: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.branches) <= MAX_BRANCHES or not 1 <= len(self.labels) <= MAX_LABELS:
            raise QuestionError("bad-question", "A choice needs branches and labels, and not too many.")
        RowFn.__post_init__(self)
        _one_kind(self.labels)
        if len(set(self.labels)) != len(self.labels):
            raise QuestionError("bad-question", "The labels of a choice must differ.")
        for when, place in self.branches:
            check(when, "A condition")
            if place is not None and not is_whole(place, 0, len(self.labels) - 1):
                raise QuestionError("bad-question", "A branch gives one of the labels, or none.")
        if self.otherwise is not None and not is_whole(self.otherwise, 0, len(self.labels) - 1):
            raise QuestionError("bad-question", "A choice ends with one of the labels, or none.")

    def parts(self) -> tuple[RowFn, ...]:
        return tuple(when for when, _ in self.branches)

    def kind(self, schema: Schema) -> Code:
        for when, _ in self.branches:
            condition(when, schema)
        return Code(self.labels, self.otherwise is None or any(place is None for _, place in self.branches))

    def cells(self, frame: Frame) -> Cells:
        found = np.full(frame.size, -1 if self.otherwise is None else self.otherwise, dtype=np.int64)
        for when, place in reversed(self.branches):
            found = np.where(known(*truths(when, frame)), -1 if place is None else place, found)
        return Cells(found, found < 0)


def _one_kind(labels: Iterable[object]) -> None:
    """Labels can be told apart and put in order whatever rows there are: what cannot is refused here (T30)."""
    if len({str if isinstance(x, str) else bool if isinstance(x, bool) else float for x in labels}) != 1:
        raise QuestionError("bad-question", "The labels of a key are all texts, all numbers or all truths.")


@dataclass(frozen=True, slots=True, eq=False)
class Relabel(RowFn, item="The item"):
    """A key under other names: labels[i] is the new name of code i, None where it has none and is missing.

    Codes of one name become one. The new labels are sorted.
    """

    item: RowFn
    labels: tuple[int | float | str | bool | None, ...]

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if len(self.labels) > MAX_LABELS:
            raise QuestionError("too-large", "A key has at most 2^20 labels.")
        object.__setattr__(self, "labels", tuple(None if x is None else literal(x) for x in self.labels))
        _one_kind(self._named)

    @property
    def _named(self) -> list[Literal]:
        return [label for label in self.labels if label is not None]

    def renamed(self) -> tuple[tuple[Literal, ...], list[int | None]]:
        """The new labels, and the new code of each old one."""
        different = {cast("float", label): label for label in reversed(self._named)}
        names = tuple(different[key] for key in sorted(different))
        places = {cast("float", label): i for i, label in enumerate(names)}
        return names, [None if label is None else places[cast("float", label)] for label in self.labels]

    def kind(self, schema: Schema) -> Code:
        inner = code(self.item, schema)
        if inner.size != len(self.labels):
            raise QuestionError("bad-question", f"A key of {inner.size} labels needs as many new ones.")
        return Code(self.renamed()[0], inner.nullable or None in self.labels)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        places = np.array([-1 if place is None else place for place in self.renamed()[1]], dtype=np.int64)
        found = entry(places, cast("Integers", item.values))
        return Cells(found, union(item.missing, found < 0) if None in self.labels else item.missing)


@dataclass(frozen=True, slots=True, eq=False)
class OrMissing(RowFn, item="The item"):
    """A key with one label more, None, for the rows in which it is missing."""

    item: RowFn

    def kind(self, schema: Schema) -> Code:
        inner = code(self.item, schema)
        return Code((*inner.labels, None), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        if item.missing is None:
            return item
        last = code(self.item, frame.schema).size
        return Cells(np.where(item.missing, last, cast("Integers", item.values)), None)


@dataclass(frozen=True, slots=True, eq=False)
class Value(RowFn, item="The item"):
    """The number a label is; missing where the label is None."""

    item: RowFn

    def figures(self, schema: Schema) -> list[float | None]:
        """The number of each code."""
        return self._figures(code(self.item, schema))

    def _figures(self, inner: Code) -> list[float | None]:
        found: list[float | None] = []
        for label in inner.labels:
            if label is not None and (isinstance(label, bool) or not isinstance(label, (int, float))):
                raise QuestionError("wrong-kind", f"{describe(self.item)} has labels that are no numbers.")
            found.append(None if label is None else float(label))
        return found

    def kind(self, schema: Schema) -> Scalar:
        inner = code(self.item, schema)
        figures = self._figures(inner)
        known = [Fraction(x) for x in figures if x is not None] or [Fraction(0)]
        step = Fraction(1) if all(x.denominator == 1 for x in known) else None
        return Scalar(min(known), max(known), step, inner.nullable or None in figures)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        figures = self.figures(frame.schema)
        table = np.array([0.0 if x is None else x for x in figures])
        none = np.array([x is None for x in figures], dtype=np.bool_)
        index = cast("Integers", item.values)
        gone = entry(none, index) if none.any() else None
        return Cells(entry(table, index), union(item.missing, gone))


MAX_TREE_NODES: Final = 65_536
MAX_CHILDREN: Final = 2**20
MAX_TREE_DEPTH: Final = 64
Node = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Paths:
    """A tree laid out for whole columns: from place p a row with code c of key `key[p]` goes to `to[start[p] + c]`.

    Places are the nodes, then the leaves, then nowhere. A leaf and nowhere ask the
    key after the last, whose code is 0 for every row, and lead to themselves.
    """

    key: Integers
    start: Integers
    to: Integers
    depth: int
    leaves: int


@dataclass(frozen=True, slots=True, eq=False)
class Route(RowFn, keys="A key"):
    """The leaf, from 0, that a row comes to from node 0 of a public tree; every row comes to one, or to none.

    A node is (key, child, child, ...): the number of the key it asks and, for each
    code of that key, where to go on. A child is a later node by its number, a leaf
    l as -1 - l, or None: nowhere, the row is in no cell. A row whose path asks a
    key that it misses is in no cell either (ask `OrMissing(key)` to give the
    missing a child of their own); keys off its path are not looked at. The
    tree without nodes has one leaf, where every row is.
    """

    keys: tuple[RowFn, ...]
    tree: tuple[Node, ...]

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        children = sum(len(node) for node in self.tree if isinstance(node, tuple))
        if len(self.tree) > MAX_TREE_NODES or len(self.keys) > MAX_TREE_NODES or children > MAX_CHILDREN:
            raise QuestionError("too-large", f"A tree has at most {MAX_TREE_NODES} nodes and {MAX_CHILDREN} children.")
        leaves: set[int] = set()
        for place, node in enumerate(self.tree):
            leaves.update(_leaves(place, node, len(self.tree), len(self.keys)))
        if leaves and max(leaves) + 1 != len(leaves):
            raise QuestionError("bad-question", "The leaves of a tree are numbered from 0 without a gap.")
        if self.tree and not leaves:
            raise QuestionError("bad-question", "A tree needs a leaf.")
        if self.depth > MAX_TREE_DEPTH:
            raise QuestionError("too-large", f"A tree asks at most {MAX_TREE_DEPTH} keys of a row.")

    @property
    def depth(self) -> int:
        """How many keys the longest path asks."""
        below = [0] * len(self.tree)
        for place in range(len(self.tree) - 1, -1, -1):
            later = (below[child] for child in self.tree[place][1:] if child is not None and child >= 0)
            below[place] = 1 + max(later, default=0)
        return below[0] if below else 0

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return max((-child for node in self.tree for child in node[1:] if child is not None and child < 0), default=1)

    @per_schema
    def kind(self, schema: Schema) -> Code:
        kinds = [code(key, schema) for key in self.keys]
        if any(len(node) - 1 != kinds[cast("int", node[0])].size for node in self.tree):
            raise QuestionError("bad-question", "A node of a tree needs one child for each label of its key.")
        nowhere = any(None in node[1:] for node in self.tree)
        return Code(tuple(range(self.leaves)), nowhere or any(kinds[key].nullable for key in self.asked))

    @property
    def asked(self) -> tuple[int, ...]:
        """The numbers of the keys that some node asks."""
        return tuple(sorted({cast("int", node[0]) for node in self.tree}))

    def paths(self) -> Paths:
        """The tree as columns; each node has one child more, nowhere, for rows that miss its key."""
        nodes, leaves = len(self.tree), self.leaves
        nowhere = nodes + leaves
        row = {number: i for i, number in enumerate(self.asked)}
        key = [row[cast("int", node[0])] for node in self.tree] + [len(row)] * (leaves + 1)
        start: list[int] = []
        to: list[int] = []
        for node in self.tree:
            start.append(len(to))
            to += [nowhere if child is None else child if child >= 0 else nodes - 1 - child for child in node[1:]]
            to.append(nowhere)
        for place in range(nodes, nowhere + 1):
            start.append(len(to))
            to.append(place)
        columns = [np.array(column, dtype=np.int64) for column in (key, start, to)]
        return Paths(columns[0], columns[1], columns[2], self.depth, leaves)

    def cells(self, frame: Frame) -> Cells:
        paths = _small_paths(self) if sum(map(len, self.tree)) <= MAX_CACHED else self.paths()
        sizes = [code(self.keys[number], frame.schema).size for number in self.asked]
        # One row of codes for each key, as narrow as they are, and one of zeros for those who are there.
        codes = np.zeros((len(sizes) + 1, frame.size), dtype=np.min_scalar_type(max(sizes, default=0)))
        for own, number, size in zip(codes, self.asked, sizes, strict=False):
            cells = evaluate(self.keys[number], frame)
            # As whole numbers without a sign: whatever is no code of the key becomes the one after its last.
            np.minimum(cast("Integers", cells.values).view(np.uint64), size, out=own, casting="unsafe")
            if cells.missing is not None:
                own[cells.missing] = size
        flat, rows, first = codes.ravel(), np.arange(frame.size), paths.key * frame.size
        place = np.zeros(frame.size, dtype=np.int64)
        for _ in range(paths.depth):
            asked = first.take(place)
            asked += rows
            child = paths.start.take(place)
            child += flat.take(asked)
            place = paths.to.take(child)
        leaf = place - len(self.tree)
        return Cells(leaf, leaf == paths.leaves)


@functools.lru_cache(maxsize=64)
def _small_paths(fn: Route) -> Paths:
    """The paths of a small tree, kept from batch to batch: what is kept must stay small."""
    return fn.paths()


def _leaves(place: int, node: Node, nodes: int, keys: int) -> Iterator[int]:
    """The leaves among a node's children, or a refusal; a child comes later than its node, so no path is endless."""
    wrong = QuestionError(
        "bad-question",
        "A node of a tree is its key and, for each label, a later node, a leaf l as -1 - l, or None.",
    )
    if not isinstance(node, tuple) or len(node) < 2 or not is_whole(node[0], 0, keys - 1):
        raise wrong
    for child in node[1:]:
        if child is None:
            continue
        if not is_whole(child, -MAX_CHILDREN, nodes - 1) or 0 <= child <= place:
            raise wrong
        if child < 0:
            yield -1 - child
