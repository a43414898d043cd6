"""What sums run over: a table, or rows derived from tables, each of them one person's or nobody's own.

The language is closed and typed. A row function inside a relation speaks of the
columns of its source. Whose a derived row is, how many of them one person can
have and what its columns hold follows from public facts alone (language/shape.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sulq.errors import QuestionError
from sulq.language.rowfn import RowFn

AGGREGATES: Final = ("count", "sum", "mean", "min", "max", "distinct")
MAX_COLUMNS: Final = 1024
MAX_RELATION_DEPTH: Final = 32


class _Rows:
    """Rows made of other rows and of row functions: those of its fields."""

    __slots__ = ()

    def sources(self) -> tuple[Relation, ...]:
        """The relations this is made of."""
        return tuple(item for item in self._held() if isinstance(item, RELATIONS))

    def parts(self) -> tuple[RowFn, ...]:
        """The row functions this is made of."""
        return tuple(item for item in self._held() if isinstance(item, RowFn))

    def _held(self) -> Iterator[object]:
        front = [getattr(self, name) for name in self.__match_args__]  # type: ignore[attr-defined]  # of a dataclass
        for value in front:
            yield from _flat(value)


def _flat(value: object) -> Iterator[object]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


@dataclass(frozen=True, slots=True)
class Table(_Rows):
    """The kept rows of one table, by the name it was registered under ("" where there is only one)."""

    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Where(_Rows):
    """The rows of a relation for which a condition is true."""

    source: Relation
    condition: RowFn

    def __post_init__(self) -> None:
        _relations(self.source)
        _functions(self.condition)


@dataclass(frozen=True, slots=True, eq=False)
class Select(_Rows):
    """The rows of a relation with other columns: each a row function, clamped and put on the grid of its kind."""

    source: Relation
    columns: tuple[tuple[str, RowFn], ...]

    def __post_init__(self) -> None:
        _relations(self.source)
        _named([name for name, _ in self.columns])
        _functions(*(fn for _, fn in self.columns))


@dataclass(frozen=True, slots=True, eq=False)
class Join(_Rows):
    """Pairs of rows whose columns agree; the columns of both, all of different names.

    `on`: pairs of a left and a right column; a missing value agrees with nothing.
    `how`: "inner", or "left" to keep left rows without a match, the right columns
    missing. `person`: whether both rows must be one person's; two private
    relations are joined no other way (SR15).
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    how: str = "inner"
    person: bool = False

    def __post_init__(self) -> None:
        _relations(self.left, self.right)
        if self.how not in ("inner", "left") or not isinstance(self.person, bool):
            raise QuestionError("bad-question", "A join is inner or left.")
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.on) or len(self.on) > 32:
            raise QuestionError("bad-question", "A join matches pairs of columns, at most 32 of them.")


@dataclass(frozen=True, slots=True, eq=False)
class PerPerson(_Rows):
    """One row for each person and each combination of keys that the person's rows hold.

    Columns: the keys (a missing key is a key like any other), then `values`, each
    a name, one of AGGREGATES and what is aggregated (None: the rows themselves,
    for "count"). Missing values are left out; of no values at all "count" and
    "distinct" are 0 and the others missing. Categories are ordered as declared,
    texts by code point. Without keys a person has one row, whatever the cells of
    the person's own column are.
    """

    source: Relation
    keys: tuple[str, ...]
    values: tuple[tuple[str, str, RowFn | None], ...]

    def __post_init__(self) -> None:
        _relations(self.source)
        _named([*self.keys, *(name for name, _, _ in self.values)], least=0)
        _functions(*(fn for _, _, fn in self.values if fn is not None))
        if not all(how in AGGREGATES and (fn is not None or how == "count") for _, how, fn in self.values):
            raise QuestionError("bad-question", f"A person's rows are put together by {', '.join(AGGREGATES)}.")


@dataclass(frozen=True, slots=True, eq=False)
class Distinct(_Rows):
    """The different rows of a relation, nobody's own: a person alters no more of them than of the rows themselves."""

    source: Relation

    def __post_init__(self) -> None:
        _relations(self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Union(_Rows):
    """The rows of several relations of the same columns, one after the other (UNION ALL)."""

    relations: tuple[Relation, ...]

    def __post_init__(self) -> None:
        _relations(*self.relations)
        if not 2 <= len(self.relations) <= 64:
            raise QuestionError("too-large", "A union has 2 to 64 parts.")


Relation = Table | Where | Select | Join | PerPerson | Distinct | Union
RELATIONS: Final = (Table, Where, Select, Join, PerPerson, Distinct, Union)


def functions(relation: Relation) -> list[RowFn]:
    """Every row function of a relation and of all it is made of; refuses one nested too deeply (T74)."""
    return [fn for _, fns in steps(relation) for fn in fns]


def steps(relation: Relation) -> list[tuple[Relation, tuple[RowFn, ...]]]:
    """The row functions of a relation and of all it is made of, with the rows that they speak of.

    Those of a condition on a table's rows speak of the table, as a question's do; all others of derived rows.
    """
    found: list[tuple[Relation, tuple[RowFn, ...]]] = []
    front: list[Relation] = [relation]
    for _ in range(MAX_RELATION_DEPTH):
        for item in front:
            condition = isinstance(item, Where) and isinstance(item.source, Table)
            found.append((item.sources()[0] if condition else item, item.parts()))
        front = [source for item in front for source in item.sources()]
        if not front:
            return found
        if len(front) > MAX_COLUMNS:
            break
    raise QuestionError("too-large", "The tables of this question are nested too deeply.")


def _relations(*items: object) -> None:
    if not all(isinstance(item, RELATIONS) for item in items):
        raise QuestionError("bad-question", "A derived table is made of tables.")


def _functions(*items: object) -> None:
    if not all(isinstance(item, RowFn) for item in items):
        raise QuestionError("bad-question", "A derived table is built from row functions: sulq.col(...).")


def _named(names: list[object], least: int = 1) -> None:
    texts = all(isinstance(name, str) and name for name in names)
    if not least <= len(names) <= MAX_COLUMNS or not texts or len(set(names)) != len(names):
        raise QuestionError("bad-question", f"A derived table has up to {MAX_COLUMNS} columns of different names.")
