"""What of the rows some tallies look at: columns, persons, places, and the vectors that kernels read as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from sulq.curator.engines import by_cell
from sulq.terms import wire
from sulq.terms.engine import Tally
from sulq.terms.rowfn.keys import Bucket
from sulq.terms.rowfn.scalar import Col, IsMissing, Position, RowFn
from sulq.terms.rowfn.scaled import Scaled
from sulq.terms.rowfn.vectors import Dot, Nearest, Outer, Vector, WithinBall

READERS = (Dot, Nearest, IsMissing)
SUMMED = (Vector, WithinBall, Scaled)


class Needed:
    """What is looked at: columns, the person's hash, the place in the source."""

    def __init__(self, columns: Iterable[str] = ()) -> None:
        self.columns = set(columns)
        self.person = False
        self.place = False


def needed(*tallies: Tally, known: Collection[str] = ()) -> Needed:
    """What of the rows the functions of tallies look at; nothing for vectors that are known, by their text."""
    found = Needed()
    for fn, whole in _walk(tallies, known):
        if not whole:
            found.columns |= {fn.name} if isinstance(fn, Col) else set()
            found.person |= isinstance(fn, Bucket)
            found.place |= isinstance(fn, Position)
    return found


def vectors(tallies: Iterable[Tally]) -> dict[str, RowFn]:
    """The vectors that kernels read as a whole, by their text."""
    return {wire.encode(fn): fn for fn, whole in _walk(tallies, None) if whole}


def by_rows(tallies: Iterable[Tally]) -> set[str]:
    """Of these vectors those that are added up by cell, row by row, by their text."""
    blocks = [block.fn for tally in tallies if tally.by for block in tally.blocks]
    summed = [fn.vector if isinstance(fn, Scaled) else fn for fn in blocks if isinstance(fn, SUMMED)]
    return {wire.encode(fn) for fn in summed} if summed and by_cell.installed() else set()


def functions(tally: Tally) -> list[RowFn]:
    """The row functions of a tally."""
    where = [] if tally.where is None else [tally.where]
    return [block.fn for block in tally.blocks] + [key.fn for key in tally.by] + where


def _walk(tallies: Iterable[Tally], known: Collection[str] | None) -> Iterator[tuple[RowFn, bool]]:
    """Every row function that is worked out row by row, and the vectors read as a whole that are known (None: all).

    Kernels read the vector of a block, of a product, a scaled vector or an outer
    product that is a block, and of dot, nearest and is_missing wherever they stand.
    """
    front: list[tuple[RowFn, bool]] = []
    for tally in tallies:
        blocks = [block.fn for block in tally.blocks]
        front += [(fn.vector, True) for fn in blocks if isinstance(fn, (Outer, Scaled))]
        front += [(fn.factor, False) for fn in blocks if isinstance(fn, Scaled)]
        front += [(fn, True) for fn in blocks if not isinstance(fn, (Outer, Scaled))]
        front += [(fn, False) for fn in functions(tally)[len(blocks) :]]
    while front:
        fn, whole = front.pop()
        whole = whole and _plain(fn)
        if whole and (known is None or (known and wire.encode(fn) in known)):
            yield fn, True
            if known is not None:
                continue
        else:
            yield fn, False
        front += [(part, isinstance(fn, READERS)) for part in fn.parts()]


def _plain(fn: RowFn) -> bool:
    """Whether this is a vector, in a ball or not, in whose coordinates no other is read."""
    vector = fn.vector if isinstance(fn, WithinBall) else fn
    if not isinstance(vector, Vector):
        return False
    front = list(vector.items)
    while front:
        part = front.pop()
        if isinstance(part, READERS):
            return False
        front += part.parts()
    return True
