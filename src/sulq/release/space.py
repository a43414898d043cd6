"""The declared domain as cells: some columns, each a key of finitely many; and marginals of them, with error bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa

from sulq.answers.answer import extra
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.attribute import Attribute
from sulq.language.domain import Column, Schema
from sulq.language.kinds import Code, Floats
from sulq.language.question import MAX_VALUES, Sums
from sulq.language.rowfn import Col, IsMissing, Lit, Logic, Not, RowFn
from sulq.release.base import Chart
from sulq.release.tables.interactions import Places

if TYPE_CHECKING:
    import pandas

MAX_BINS: Final = 1024
MAX_KEYS: Final = 32  # columns that one question counts by


def text(label: object) -> str:
    """A cell's name for people: a value, or an interval."""
    return "..".join(map(_edge, label)) if isinstance(label, (tuple, list)) else str(label)


def _edge(value: object) -> str:
    """An interval's end: a whole number without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def rows(labels: Sequence[Sequence[object]]) -> list[list[str]]:
    """Columns of cell names, one an attribute, the last fastest."""
    several = list(itertools.product(*([text(label) for label in own] for own in labels)))
    return [[row[i] for row in several] for i in range(len(labels))]


def named(names: Sequence[str], column: str) -> str:
    """A column's name beside the attributes', which keep theirs."""
    while column in names:
        column += "_"
    return column


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """Counts by some attributes: `values` and `standard_error` have an axis for each.

    `added`: rows that are in the published table beside the counted ones, in each cell of this marginal
    (`fourier-shift`); `values` are without them.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[object, ...], ...]
    values: Floats
    standard_error: Floats
    added: float = 0.0

    @property
    def cells(self) -> tuple[str, ...]:
        """A name for each cell, the last attribute fastest."""
        return tuple(" / ".join(map(text, cell)) for cell in itertools.product(*self.labels))

    def chart(self, said: str, error: Floats | None = None) -> Chart:
        """Bars of the cells, with half the length of their intervals where that is known."""
        bars = () if error is None else tuple(error.ravel())
        return Chart(", ".join(self.names), self.cells, tuple(self.values.ravel()), bars, said)

    def accuracy(self, beta: float = 0.05) -> Floats:
        """About how far off a cell may be except with probability beta: the wider of a normal and a Laplace tail."""
        checked(isinstance(beta, float) and 0 < beta < 1, "beta lies strictly between 0 and 1.")
        factor = max(-NormalDist().inv_cdf(beta / 2), -math.log(beta) / math.sqrt(2.0))
        return self.standard_error * factor

    @property
    def percent(self) -> Floats:
        """Shares of the whole in percent; with the added rows counted, so that they are seldom negative."""
        padded = self.values + self.added
        whole = float(padded.sum())
        return padded * (100.0 / whole if whole > 0 else 0.0)

    def to_dict(self) -> dict[str, Sequence[object]]:
        """Columns by name: an attribute's cells, `value`, `standard_error`."""
        table: dict[str, Sequence[object]] = {}
        table.update(zip(self.names, rows(self.labels), strict=True))
        table[named(self.names, "value")] = self.values.ravel().tolist()
        table[named(self.names, "standard_error")] = self.standard_error.ravel().tolist()
        return table

    def to_arrow(self) -> pa.Table:
        """As an Arrow table."""
        return pa.table(self.to_dict())

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas frame (needs the extra `pandas`)."""
        return cast("pandas.DataFrame", extra("pandas", "pandas").DataFrame(self.to_dict()))

    def __repr__(self) -> str:
        shown = [
            f"{cell}: {value:,.6g} ± {error:,.3g}"
            for cell, value, error in itertools.islice(
                zip(self.cells, self.values.ravel(), self.standard_error.ravel(), strict=True), 20
            )
        ]
        more = self.values.size - len(shown)
        return "\n".join([", ".join(self.names), *shown, *([f"and {more:,} more cells"] if more else [])])


def below(marginals: Iterable[Marginal], title: str, cell: str) -> pa.Table:
    """Marginals below each other: `title` names the column of their names, `cell` that of their cells' names."""
    several = list(marginals)
    titles = [" x ".join(each.names) for each in several for _ in range(each.standard_error.size)]
    columns = {
        title: pa.array(titles, pa.string()),
        cell: pa.array([name for each in several for name in each.cells], pa.string()),
    }
    for name, attribute in (("value", "values"), ("standard_error", "standard_error")):
        numbers = [getattr(each, attribute).ravel() for each in several]
        columns[name] = pa.array(np.concatenate([np.zeros(0), *numbers]))
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class ColumnWords:
    """How a release speaks of its columns: the noun with its article, and how many there may be."""

    noun: str
    article: str
    most: int
    limit: str
    marginal: str


COLUMNS: Final = ColumnWords(
    "column",
    "A",
    50,  # letters of a sum of products over them all
    "Synthetic data has at most 50 columns.",
    "A marginal is a list of some of the columns {}.",
)
ATTRIBUTES: Final = ColumnWords(
    "attribute",
    "An",
    1024,
    "A table has at most 1,024 attributes.",
    "A marginal is a list of attributes of the table: {}.",
)


def listed(names: object, words: ColumnWords, least: int = 1) -> Sequence[str]:
    """Names of different columns, as many as a release takes; refuses whatever else was given for them."""
    given: Sequence[str] = names if isinstance(names, (list, tuple)) else ()
    fine = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in given)
    checked(fine and (bool(given) or least > 1), f"{words.noun}s is a list of column names.")
    checked(len(set(given)) == len(given), f"{words.article} {words.noun} is named twice.")
    checked(least <= len(given) <= words.most, words.limit)
    return given


def domain_of(name: str, schema: Schema) -> Column:
    """The declared domain of a column.

    Raises:
        QuestionError: `unknown-column`: it is not declared; names what is.
    """
    Col(name).kind(schema)
    domain = schema.find(name)
    assert domain is not None  # noqa: S101 - for the type checker
    return domain


@dataclass(frozen=True, slots=True, eq=False)
class CellSpace:
    """Columns as keys. Rows that miss a value in any of them are not counted: so all marginals are of one table."""

    attributes: tuple[Attribute, ...]
    keys: tuple[RowFn, ...]
    complete: RowFn | None  # the condition that no value is missing; None where none can be
    sizes: tuple[int, ...] = field(init=False)  # the number of cells of each column

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(attribute.size for attribute in self.attributes))

    @classmethod
    def of(cls, columns: Sequence[str], schema: Schema, bins: int, words: ColumnWords = COLUMNS) -> CellSpace:
        """The space of these columns; refuses what is not declared, or cannot be a key."""
        names = listed(columns, words)
        whole(bins, "bins", 1, MAX_BINS)
        found = tuple(Attribute(name, domain_of(name, schema), bins) for name in names)
        keys = tuple(attribute.row for attribute in found)
        kinds = [key.kind(schema) for key in keys]
        gaps = [key for key, kind in zip(keys, kinds, strict=True) if isinstance(kind, Code) and kind.nullable]
        present = tuple(Not(IsMissing(key)) for key in gaps)
        complete = None if not present else present[0] if len(present) == 1 else Logic("and", present)
        return cls(found, keys, complete)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """The number of cells of the whole domain."""
        return math.prod(self.sizes)

    def shape(self, places: Places) -> tuple[int, ...]:
        """The number of cells of each column of a marginal."""
        return tuple(self.sizes[place] for place in places)

    def size(self, places: Places) -> int:
        """The number of cells of a marginal."""
        return math.prod(self.shape(places))

    def partition(self, places: Places) -> Sums:
        """The question for a marginal: a person's rows lie in as many cells as there are rows, whatever its size."""
        return Sums((Lit(1),), self.complete, tuple(self.keys[place] for place in places))

    def workload(self, marginals: Sequence[Sequence[str]] | None, ways: int) -> tuple[Places, ...]:
        """The marginals wished for: those named or, where none are, all of so many columns; each once.

        Where there are fewer columns than `ways`, the one marginal of them all. They are counted before they are
        written down: of 40 columns 20 can be taken in more than 10^11 ways.

        Raises:
            QuestionError: `bad-parameter`; `too-large`: there are more than one question holds.
        """
        whole(ways, "ways", 1, COLUMNS.most)
        if marginals is None:
            several = len(self.attributes)
            width = min(ways, several)
            if (count := math.comb(several, width)) > MAX_VALUES:
                raise _too_many(f"{several} columns have {count:,} marginals of {width}")
            return self._askable(tuple(itertools.combinations(range(several), width)))
        checked(
            isinstance(marginals, (list, tuple))
            and bool(marginals)
            and all(isinstance(own, (list, tuple)) and own for own in marginals),
            "marginals is a list of lists of columns, none empty.",
        )
        return self._askable(tuple(dict.fromkeys(tuple(sorted(places(own, self.names))) for own in marginals)))

    def _askable(self, wanted: tuple[Places, ...]) -> tuple[Places, ...]:
        """These marginals, or a refusal: each must be one question's, else a run would find that out half-way."""
        if (widest := max(map(len, wanted))) > MAX_KEYS:
            raise QuestionError(
                "too-large",
                f"A marginal of {widest} columns is no question; {MAX_KEYS} columns fit.",
                "Name the marginals that matter, or take fewer ways or columns.",
            )
        return wanted


def places(names: Sequence[str], known: Sequence[str], words: ColumnWords = COLUMNS) -> Places:
    """Where these names are among the known ones, in this order; refuses others, and one named twice."""
    checked(
        isinstance(names, (list, tuple)) and bool(names) and all(name in known for name in names),
        words.marginal.format(", ".join(known)),
    )
    checked(len(set(names)) == len(names), f"A marginal names {words.article.lower()} {words.noun} twice.")
    return tuple(list(known).index(name) for name in names)


def closure(marginals: Iterable[Places]) -> tuple[Places, ...]:
    """All marginals within these, small ones first.

    Raises:
        QuestionError: `too-large`: there are more than one question holds.
    """
    found = _within(marginals)
    if found is None:
        raise _too_many(f"More than {MAX_VALUES:,} marginals lie within those wished for")
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def closes(marginals: Iterable[Places]) -> bool:
    """Whether the marginals within these are few enough to be written down."""
    return _within(marginals) is not None


def _within(marginals: Iterable[Places]) -> set[Places] | None:
    """All marginals within these; None, as soon as that is known, where there are too many."""
    found: set[Places] = set()
    for places in marginals:
        if 2 ** len(places) - 1 > MAX_VALUES:
            return None
        found.update(part for width in range(1, len(places) + 1) for part in itertools.combinations(places, width))
        if len(found) > MAX_VALUES:
            return None
    return found


def _too_many(said: str) -> QuestionError:
    return QuestionError(
        "too-large", f"{said}; {MAX_VALUES:,} fit.", "Name the marginals that matter, or take fewer ways or columns."
    )
