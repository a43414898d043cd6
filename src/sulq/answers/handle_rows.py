"""Of which rows an ask is, that is given handles of columns: theirs.

A column of a handle says to the asks whose rows it is of; in a question, on the wire and in the ledger it is a column
like any other. What is asked of other rows than those of its handles is refused, before anything is charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

from sulq.answers.oracle import ColumnChoice, Oracle
from sulq.answers.relation_oracle import RowsOracle, base_of, scope_of
from sulq.errors import QuestionError
from sulq.language.rowfn import RowFn

W = TypeVar("W")
ONE_ROWS: Final = (
    'Take all of them from the same rows: rows = db.table("b"), db.where(condition) or db.view("SELECT ... JOIN ..."), '
    'then rows["a"], rows["b"].'
)
OWN_HANDLES: Final = 'Take the columns from what is asked: rows.mean(rows["a"]), or by name: rows.mean("a").'


def rows_of_handles(own: Oracle, asked: Sequence[object]) -> Oracle:
    """The rows whose handles are given, of a whole database; of a table, a part or a condition its own handles alone.

    Args:
        own: what is asked.
        asked: columns, lists of them and row functions; what is no handle, nor made from one, goes with those that are.
    """
    try:
        found = _of_this_database(own, asked)
    except RecursionError:
        raise QuestionError("too-large", "What is asked is nested too deeply.") from None
    if not found:
        return own
    scopes = [scope_of(each) for each in found]
    if len(set(scopes)) > 1:
        raise QuestionError("bad-question", f"The columns given here are {_apart(found)}.", ONE_ROWS)
    if scopes[0] == scope_of(own):
        return own
    if scope_of(own):
        why = f"What is asked and the columns given are {_apart([own, found[0]])}."
        raise QuestionError("bad-question", why, OWN_HANDLES)
    rows = cast("RowsOracle", found[0])
    return rows if base_of(rows) is own else rows.upon(own)


def own_rows(where: W, own: Oracle) -> W:
    """A condition as it is, unless it is built from handles of other rows than are asked."""
    for each in _of_this_database(own, (where,)):
        if scope_of(each) != scope_of(own):
            why = f"The condition and what it is asked of are {_apart([own, each])}."
            raise QuestionError("bad-question", why, ONE_ROWS)
    return where


def _of_this_database(own: Oracle, asked: Sequence[object]) -> list[Oracle]:
    """Of which rows the handles are; an exact Oracle and a noisy one may be of one database."""
    found = list(_origins(asked))
    bases = {id(base): base for base in map(base_of, found)}
    for base in bases.values():
        if _data(base) is not _data(base_of(own)):
            why = "A column given here is of another database, or of rows that were made for learning."
            raise QuestionError("bad-question", why, OWN_HANDLES)
    return found


def _data(base: Oracle) -> object:
    return getattr(base, "curator", base)


def _apart(found: Sequence[Oracle]) -> str:
    """Of which different rows columns are."""
    first = found[0]
    other = next(each for each in found if scope_of(each) != scope_of(first))
    tables = [each.facts.table for each in (first, other)]
    return f"of different rows of {tables[0]}" if tables[0] == tables[1] else f"of {tables[0]} and of {tables[1]}"


def _origins(asked: Iterable[object]) -> Iterator[Oracle]:
    """Whose rows the handles are of that are given: alone, in a list, or in a row function."""
    for item in asked:
        if isinstance(item, ColumnChoice):
            yield item.oracle
        elif isinstance(item, Mapping):
            yield from _origins(item.values())
        elif isinstance(item, (list, tuple)):
            yield from _origins(item)
        elif isinstance(item, RowFn):
            yield from _origins_within(item)


def _origins_within(fn: RowFn) -> Iterator[Oracle]:
    nodes, seen = [fn], {id(fn)}
    for node in nodes:  # a node that stands at several places is looked at once
        origin = getattr(node, "origin", None)
        if origin is not None:
            yield cast("Oracle", origin)
        parts = {id(part): part for part in node.parts() if id(part) not in seen}
        seen.update(parts)
        nodes += parts.values()
