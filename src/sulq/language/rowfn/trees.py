"""Public decision trees over keys: the leaf that a row comes to."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Frame, Integers
from sulq.language.rowfn.base import RowFn, evaluate, is_whole, per_schema
from sulq.language.rowfn.keys import code

MAX_CACHED: Final = 4096
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
