"""Small graphs as rows, and all of them: what brute force over sensitivities runs on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

Row = tuple[int, ...]
Value = tuple[int, ...]


def table(rows: Iterable[Row], width: int) -> np.ndarray:
    """Rows as an engine lists them."""
    return np.array(list(rows), dtype=np.int64).reshape(-1, width)


def pairs(vertices: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(vertices), 2))


def graphs(vertices: int) -> Iterator[frozenset[tuple[int, int]]]:
    """All simple graphs."""
    every = pairs(vertices)
    for chosen in itertools.product((0, 1), repeat=len(every)):
        yield frozenset(pair for pair, there in zip(every, chosen, strict=True) if there)


def far(a: Value, b: Value) -> tuple[int, int, int, int]:
    """L1, squared L2, the largest coordinate's, and the number of coordinates."""
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return sum(gaps), sum(g * g for g in gaps), max(gaps), sum(g > 0 for g in gaps)


def moves(values: dict[tuple[Row, ...], Value], kinds: list[Row], k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The farthest moves over all tables: as up to k rows are added, and as up to k go and up to k come.

    `values`: the statistic of every table (a sorted tuple of rows); neighbours that are not in it are left out.
    """

    def added(table: tuple[Row, ...]) -> set[tuple[Row, ...]]:
        found = {table}
        for _ in range(k):
            found |= {tuple(sorted((*one, row))) for one in found for row in kinds}
        return {one for one in found if one in values}

    alone = swapped = (0, 0, 0, 0)
    for common, value in values.items():
        larger = list(added(common))
        for one in larger:
            alone = tuple(map(max, alone, far(values[one], value)))
        for one, other in itertools.combinations(larger, 2):
            swapped = tuple(map(max, swapped, far(values[one], values[other])))
    return alone, tuple(map(max, alone, swapped))


def tables(kinds: list[Row], most: int) -> Iterator[tuple[Row, ...]]:
    """Every table of up to so many rows of these kinds, rows in no order and any number of times."""
    for size in range(most + 1):
        yield from (tuple(sorted(rows)) for rows in itertools.combinations_with_replacement(kinds, size))


def worked_out(exact: Callable[[np.ndarray], np.ndarray], kinds: list[Row], most: int) -> dict[tuple[Row, ...], Value]:
    """The statistic of every table."""
    width = len(kinds[0])
    return {rows: tuple(exact(table(rows, width)).tolist()) for rows in tables(kinds, most)}
