"""Exact sums of row functions over batches of rows: the path every engine shares.

Within a batch sums run in doubles, which are exact because a batch is cut so
that rows * |term| stays below 2^53 (SR16); between batches they run in 64-bit
integers that move to Python's own before they could wrap. So the order, the
number of batches and the number of threads change nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from sulq.compile.statements.column_demand import functions
from sulq.compile.statements.common_functions import unite
from sulq.language.domain import Schema
from sulq.language.kinds import Integers
from sulq.language.tally import Tally
from sulq.sources.folds import blas
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.block_sums import reach
from sulq.sources.folds.coordinates import Vectors
from sulq.sources.folds.joint import joined
from sulq.sources.folds.keys import Keys
from sulq.sources.folds.partial_sums import Share

EXACT: Final = 2**53
ROOM: Final = 2**22  # so many doubles a vector's coordinates take at a time, however many it has


def fold(tally: Tally, schema: Schema, batches: Iterable[Batch], *, workers: int = 1) -> Integers:
    """Exact sums of a tally over batches, shape (cells, width), saturated at +-2^62."""
    return fold_all((tally,), schema, batches, workers=workers)[0]


def fold_all(
    tallies: Sequence[Tally], schema: Schema, batches: Iterable[Batch], *, workers: int = 1
) -> tuple[Integers, ...]:
    """Exact sums of several tallies over the same rows in one pass: what two of them need is worked out once."""
    return tuple(one.sums() for one in _folded(tallies, schema, batches, workers))


def _folded(tallies: Sequence[Tally], schema: Schema, batches: Iterable[Batch], workers: int) -> list[Share]:
    most = EXACT // max([1, *(reach(block) for tally in tallies for block in tally.blocks)])
    if most == 0:
        raise OverflowError("a term leaves the exact integers")
    feed = _Feed(batches)
    united = unite(tallies)
    with blas.one_thread() as alone:
        if workers <= 1 or not alone:
            found = [_work(united, schema, feed, most)]
        else:
            with ThreadPoolExecutor(workers - 1) as pool:  # this thread is one of them
                jobs = [pool.submit(_work, united, schema, feed, most) for _ in range(workers - 1)]
                found = [_work(united, schema, feed, most), *(job.result() for job in jobs)]
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            one.merge(other)
    return found[0]


class _Feed:
    """Batches handed to whichever thread asks next."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches: Iterator[Batch] = iter(batches)
        self._lock = threading.Lock()

    def next(self) -> Batch | None:
        with self._lock:
            return next(self._batches, None)


def _work(tallies: Sequence[Tally], schema: Schema, feed: _Feed, most: int) -> list[Share]:
    vectors = Vectors(schema, [fn for tally in tallies for fn in functions(tally)])
    shares = [Share(tally, schema, vectors) for tally in tallies]
    parts = joined(shares)
    most = min(most, max(ROOM // (vectors.widest + 1), 256))
    with np.errstate(all="ignore"):  # a missing cell may hold anything; warnings must not tell of it
        while (batch := feed.next()) is not None:
            for start in range(0, batch.size, most):
                rows = batch if batch.size <= most else batch.part(start, min(start + most, batch.size))
                vectors.prime(rows)
                keys = Keys(rows)
                for part in parts:
                    part.add(rows, keys)
        for part in parts:
            part.finish()
    return shares
