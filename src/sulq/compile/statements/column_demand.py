"""What of the rows some tallies look at: columns, persons and places."""

from __future__ import annotations

from collections.abc import Iterable

from sulq.language.rowfn import Col, Position, RowFn
from sulq.language.rowfn.keys import Bucket
from sulq.language.tally import Tally


class Needed:
    """What is looked at: columns, the person's hash, the place in the source."""

    def __init__(self, columns: Iterable[str] = ()) -> None:
        self.columns = set(columns)
        self.person = False
        self.place = False


def needed(*tallies: Tally) -> Needed:
    """What of the rows the functions of tallies look at."""
    found = Needed()
    front = [fn for tally in tallies for fn in functions(tally)]
    while front:
        fn = front.pop()
        found.columns |= {fn.name} if isinstance(fn, Col) else set()
        found.person |= isinstance(fn, Bucket)
        found.place |= isinstance(fn, Position)
        front += fn.parts()
    return found


def functions(tally: Tally) -> list[RowFn]:
    """The row functions of a tally."""
    where = [] if tally.where is None else [tally.where]
    return [block.fn for block in tally.blocks] + [key.fn for key in tally.by] + where
