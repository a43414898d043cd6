"""Oracles of statistical queries: an expectation wished for, a tolerance, an answer [S2.8].

A learner written against the one seam, `StatOracle`, runs on every backend: on a known distribution, on one that
answers as badly as it may, on a sample, on a database's noise of either kind, on flipped labels. Those without privacy
are for testing learners and for data that is nobody's secret.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.forms.parameters import number as a_number
from sulq.language.domain import Category, Schema, Text
from sulq.language.kinds import Cells, Floats, Integers, Truth
from sulq.language.rowfn import Arith, Case, Col, Each, Logic, Not, RowFn, lit
from sulq.language.rowfn.base import number, numbers, walk
from sulq.learn.features import cells, numbers_of
from sulq.learn.sq.planning import checked_tolerance, sample_block

Partitions = Sequence[Sequence[RowFn]]
MAX_ROUNDING: Final = 1e-12  # sums of doubles may leave [0, 1] by this
Push = Callable[[int, float, float], float]
PUSHES: Final[dict[str, Push]] = {
    "up": lambda _, __, ___: 1.0,
    "down": lambda _, __, ___: -1.0,
    "turns": lambda number, __, ___: 1.0 if number % 2 else -1.0,
    # Small means are told too large and others too small: what a threshold at tau likes least.
    "against": lambda _, truth, tau: 1.0 if truth <= tau else -1.0,
}


class StatOracle:
    """Answers each query to within its tolerance; several are asked one by one, where there is nothing better.

    An oracle has `stat` or `stats` of its own; each has a default that asks by the other.
    """

    tabled: bool = False  # whether a table of conditions costs as one query

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, a row function within [0, 1], to within tau."""
        return float(self.stats([phi], tau)[0])

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means, none chosen after another's answer, each to within tau."""
        return np.array([self.stat(phi, tau) for phi in phis])

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """For each list of conditions, how often each is the first of its list to hold, to within tau."""
        return divided(self.stats(_flat(partitions), tau), partitions)


class PricedOracle(StatOracle):
    """An oracle with a spend: it may be asked for the best tolerance that a part of it buys."""

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means for a part of the spend, and the tolerance they have; 1 where they say nothing."""
        raise NotImplementedError

    def best_cells(self, partitions: Partitions, part: Fraction) -> tuple[list[Floats], float]:
        """Tables of conditions for a part of the spend, and the tolerance they have."""
        answers, tau = self.best(_flat(partitions), part)
        return divided(answers, partitions), tau

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse, before the first is asked, what the spend does not buy: so many lists of queries like these."""
        raise NotImplementedError

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse, before the first is asked, what the spend does not buy: so many tables like this one."""
        self.afford(first(conditions), times, tau)


def too_few_rows(tau: float, queries: int, needed: int, known: str) -> QuestionError:
    """The refusal of a tolerance that this many rows cannot give, with the number that could.

    Sizes in it are declared or released, never read off the rows (SR6).
    """
    asked = "A query" if queries == 1 else f"{queries:,} queries"
    return QuestionError("too-few-rows", f"{asked} of tolerance {tau:g} would need about {needed:,} rows; {known}.")


def too_many_queries(queries: int) -> QuestionError:
    """The refusal of a query past those the oracle was opened for."""
    return QuestionError(
        "too-large", f"This oracle was opened for {queries:,} queries.", "Open it with a larger queries=."
    )


def _flat(partitions: Partitions) -> list[RowFn]:
    return [condition for conditions in partitions for condition in first(conditions)]


def first(conditions: Sequence[RowFn]) -> list[RowFn]:
    """Conditions of which at most one holds: each, unless one before it does."""
    found: list[RowFn] = []
    for i, condition in enumerate(conditions):
        before = tuple(Not(known(earlier)) for earlier in conditions[:i])
        found.append(Logic("and", (known(condition), *before)) if before else known(condition))
    return found


def known(condition: RowFn) -> RowFn:
    """A condition that is false where it is unknown."""
    return condition.fill(value=False)


def divided(values: Floats, partitions: Partitions) -> list[Floats]:
    """Answers in a row, as one list for each list of conditions."""
    ends = np.cumsum([len(conditions) for conditions in partitions])[:-1]
    return [np.asarray(part) for part in np.split(values, ends)]


def numbered(conditions: Sequence[RowFn]) -> RowFn:
    """The number of the first condition that holds, as a key; the number of conditions where none does.

    A row has one number, so a table of such a key costs what one count does, however many conditions (X1).
    """
    branches = tuple((condition, lit(i)) for i, condition in enumerate(conditions))
    return Each(Case(branches, lit(len(conditions))))


def checked_query(phi: object, tau: float, schema: Schema) -> RowFn:
    """A query as it is asked: within [0, 1], zero where a row's cells are missing (S0.5)."""
    checked_tolerance(tau)
    if not isinstance(phi, RowFn):
        raise QuestionError("bad-question", "A query is built from columns: sulq.col(...).")
    kind = number(phi, schema)
    if kind.lo is None or kind.hi is None or kind.lo < -MAX_ROUNDING or kind.hi > 1 + MAX_ROUNDING:
        raise QuestionError(
            "bad-question", "A statistical query is a row function within [0, 1].", "Clip it to [0, 1]."
        )
    if kind.nullable:
        phi = phi.fill(value=False) if isinstance(phi.kind(schema), Truth) else phi.fill(0)
    return phi.clip(0, 1) if kind.lo < 0 or kind.hi > 1 else phi


class PublicTable:
    """An ordinary table with declared columns: a frame, or arrays by name."""

    def __init__(self, columns: Mapping[str, object], data: object) -> None:
        self.schema = Schema.of("table", columns)
        names = list(self.schema.names)
        if isinstance(data, Mapping):
            missing = [name for name in names if name not in data]
            if missing:
                raise QuestionError("bad-table", f"The table has no column {missing[0]!r}.")
            self._cells = {name: np.asarray(data[name]) for name in names}
        else:
            self._cells = cells(data, names)
        sizes = {len(column) for column in self._cells.values()}
        if len(sizes) != 1:
            raise QuestionError("bad-table", "The columns of a table are of one length.")
        self.size = sizes.pop()
        self.seen: dict[int, Cells] = {}

    def rows(self, start: int, stop: int) -> PublicTable:
        """A part of the rows."""
        part = object.__new__(PublicTable)
        part.schema = self.schema
        part._cells = {name: column[start:stop] for name, column in self._cells.items()}
        part.size = max(0, min(stop, self.size) - start)
        part.seen = {}
        return part

    def codes(self, name: str) -> Cells:
        """A column's cells in grid units, clamped to the declared bounds."""
        column, raw = self.schema.find(name), self._cells[name]
        if isinstance(column, (Text, Category)) or column is None:
            return _listed(raw, column)
        values = numbers_of(raw, column, name)
        missing = np.isnan(values)
        units = np.floor(np.where(missing, 0.0, values) / float(column.step) + 0.5)
        return Cells(np.clip(units, column.low, column.high).astype(np.int64), missing)

    def person(self) -> Integers:
        """Every row is a person."""
        return self.position()

    def position(self) -> Integers:
        """Each row's place."""
        return np.arange(self.size, dtype=np.int64)


def _listed(raw: npt.NDArray[np.generic], column: Text | Category | None) -> Cells:
    """Texts as they are, categories as their places on the list; what is not listed is missing (SR21)."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in raw]
    if isinstance(column, Category):
        places = {label: place for place, label in enumerate(column.values)}
        found = np.array([places.get(value, -1) for value in plain], dtype=np.int64)
        return Cells(found, found < 0)
    missing = np.array([value is None for value in plain], dtype=np.bool_)
    return Cells(np.array(["" if value is None else str(value) for value in plain], dtype=object), missing)


class Exact(StatOracle):
    """The mean over a public table, or over a distribution on its rows: what the learners' theorems speak of.

    columns: The declared columns, as for `sulq.connect`.
    data: A frame, or arrays by name.
    weights: How likely each row is; evenly where left out.
    """

    def __init__(self, columns: Mapping[str, object], data: object, weights: npt.ArrayLike | None = None) -> None:
        self.table = PublicTable(columns, data)
        mass = np.ones(self.table.size) if weights is None else np.asarray(weights, dtype=np.float64)
        if mass.shape != (self.table.size,) or not np.all(mass >= 0) or not 0 < mass.sum() < np.inf:
            raise QuestionError("bad-table", "Give a weight of zero or more for each row, not all zero.")
        self._mass = mass / mass.sum()

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi."""
        query = checked_query(phi, tau, self.table.schema)
        return float(self._mass @ numbers(query, self.table)[0])


class Adversarial(StatOracle):
    """An oracle's answers, each moved by a whole tau up or down [S2.8].

    A learner's theorem must hold whatever the answers are within tau, so its test is this oracle: a learner that
    fails only where noise happens to be unkind would pass a simulation.

    oracle: Whose answers are pushed; a query to it is taken as exact.
    push: One of "up", "down", "turns" and "against", or a function of the query's number,
        the truth and tau that gives how many taus to move by, from -1 to 1.
    """

    def __init__(self, oracle: StatOracle, push: str | Push = "against") -> None:
        if isinstance(push, str) and push not in PUSHES:
            raise QuestionError("bad-parameter", f"push is one of {', '.join(PUSHES)}, or a function.")
        self._oracle = oracle
        self._push = PUSHES[push] if isinstance(push, str) else push
        self.asked = 0

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, pushed."""
        truth = self._oracle.stat(phi, tau)
        move = self._push(self.asked, truth, tau)
        self.asked += 1
        return truth + tau * min(max(move, -1.0), 1.0)


class Sample(StatOracle):
    """The mean over block i of the rows answers query i, so that no row is looked at twice [S2.11].

    Accuracy: all of M answers are within their tolerances except with probability beta, however each
    query was chosen after the answers before it, if the rows are an independent sample and a block
    holds ceil(ln(2M/beta)/(2 tau^2)) of them; else the query is refused.
    Source: SQNotes, Theorem 6.

    columns: The declared columns, as for `sulq.connect`.
    data: A frame, or arrays by name, its rows in no particular order.
    queries: How many queries there may be, M.
    beta: The probability with which any answer may be farther off.
    """

    def __init__(self, columns: Mapping[str, object], data: object, *, queries: int, beta: float = 0.05) -> None:
        self.table = PublicTable(columns, data)
        self.queries = whole(queries, "queries", 1, 10**9)
        checked(isinstance(beta, float) and 0 < beta < 1, "beta lies between 0 and 1.")
        self.beta = beta
        self.block = self.table.size // self.queries
        self.asked = 0

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi over the next block."""
        query = checked_query(phi, tau, self.table.schema)
        if self.asked >= self.queries:
            raise too_many_queries(self.queries)
        needed = sample_block(self.queries, tau, self.beta)
        if needed > self.block:
            raise too_few_rows(tau, self.queries, needed * self.queries, f"there are {self.table.size:,}")
        rows = self.table.rows(self.asked * self.block, (self.asked + 1) * self.block)
        self.asked += 1
        return float(numbers(query, rows)[0].mean())


class NoisyLabels(PricedOracle):
    """An oracle on flipped labels made into one on the true ones.

    Accuracy: with psi(x, y) = (1 - eta) phi(x, y) + eta (1 - phi(x, not y)), which lies in [0, 1],
    E[phi(x, truth)] = (E[psi(x, seen)] - eta)/(1 - 2 eta), so psi asked to within tau (1 - 2 eta)
    gives phi to within tau. With `paper` the two parts of phi, the one that no label enters and the one
    that flips with it, are two queries to within tau/2 and tau (1 - 2 eta)/2, as the notes have it.
    Source: SQNotes, Theorem 8 [S2.13, S2.14] (docs/theory/statistical-queries.md).

    oracle: Any oracle over rows with the flipped labels.
    label: The name of the label's column, a truth value.
    eta: How likely a label was flipped, from 0 up to 1/2; an eta that is wrong by a factor in 1/(1 - 2 eta)
        makes answers wrong by it.
    """

    def __init__(self, oracle: StatOracle, label: str, eta: float, *, paper: bool = False) -> None:
        checked(0 <= a_number(eta) < 0.5, "eta lies from 0 up to, not including, 1/2.")
        self._oracle, self.label, self.eta, self.paper = oracle, label, float(eta), paper

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """The means of phis over the true labels."""
        checked_tolerance(tau)
        free = [i for i, phi in enumerate(phis) if not mentions(phi, self.label)]
        bound = [i for i in range(len(phis)) if i not in set(free)]
        found = np.zeros(len(phis))
        if free:
            found[free] = self._oracle.stats([phis[i] for i in free], tau)
        if bound:
            ask = self._two if self.paper else self._one
            found[bound] = ask([phis[i] for i in bound], tau)
        return found

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means over the true labels for a part of the spend, and the tolerance they have."""
        answers, tau = self._priced().best([self._corrected(phi) for phi in phis], part)
        return (answers - self.eta) / (1 - 2 * self.eta), min(tau / (1 - 2 * self.eta), 1.0)

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """Tables of conditions over the true labels."""
        if not self._tabled:
            return super().cells(partitions, tau)
        return self._unmixed(self._oracle.cells(self._both(partitions), tau * (1 - 2 * self.eta)))

    def best_cells(self, partitions: Partitions, part: Fraction) -> tuple[list[Floats], float]:
        """Tables of conditions over the true labels for a part of the spend, and the tolerance they have."""
        if not self._tabled:
            return super().best_cells(partitions, part)
        tables, tau = self._priced().best_cells(self._both(partitions), part)
        return self._unmixed(tables), min(tau / (1 - 2 * self.eta), 1.0)

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        self._priced().afford([self._corrected(phi) for phi in phis], times, tau * (1 - 2 * self.eta))

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        if self._tabled:
            self._priced().afford_cells(conditions, 2 * times, tau * (1 - 2 * self.eta))
        else:
            super().afford_cells(conditions, times, tau)

    @property
    def _tabled(self) -> bool:
        """Whether a table costs the oracle behind as one query: then two tables, seen and turned, are cheapest."""
        return bool(getattr(self._oracle, "tabled", False))

    def _both(self, partitions: Partitions) -> list[list[RowFn]]:
        turned = [[flipped(one, self.label) for one in conditions] for conditions in partitions]
        return [*map(list, partitions), *turned]

    def _unmixed(self, tables: list[Floats]) -> list[Floats]:
        """E[phi(x, truth)] = ((1 - eta) E[phi(x, seen)] - eta E[phi(x, not seen)])/(1 - 2 eta): off by tau at most."""
        half = len(tables) // 2
        pairs = zip(tables[:half], tables[half:], strict=True)
        return [((1 - self.eta) * seen - self.eta * turned) / (1 - 2 * self.eta) for seen, turned in pairs]

    def _priced(self) -> PricedOracle:
        checked(hasattr(self._oracle, "best"), "The oracle behind has no spend: name a tolerance.")
        return cast("PricedOracle", self._oracle)

    def _one(self, phis: Sequence[RowFn], tau: float) -> Floats:
        answers = self._oracle.stats([self._corrected(phi) for phi in phis], tau * (1 - 2 * self.eta))
        return (answers - self.eta) / (1 - 2 * self.eta)

    def _corrected(self, phi: RowFn) -> RowFn:
        seen, turned = _zero(phi), _zero(flipped(phi, self.label))
        return seen * (1 - self.eta) + (1 - turned) * self.eta

    def _two(self, phis: Sequence[RowFn], tau: float) -> Floats:
        pairs = [(_zero(phi), _zero(flipped(phi, self.label))) for phi in phis]
        same = self._oracle.stats([(seen + turned) * 0.5 for seen, turned in pairs], tau / 2)
        turns = [(seen - turned) * 0.5 + 0.5 for seen, turned in pairs]
        other = self._oracle.stats(turns, tau * (1 - 2 * self.eta) / 2)
        return same + (other - 0.5) / (1 - 2 * self.eta)


def mentions(phi: RowFn, label: str) -> bool:
    """Whether a row function looks at a column."""
    if not isinstance(phi, RowFn):
        raise QuestionError("bad-question", "A query is built from columns: sulq.col(...).")
    return any(isinstance(fn, Col) and fn.name == label for fn in walk(phi))


def flipped(phi: RowFn, label: str) -> RowFn:
    """The same row function of the opposite label: phi(x, not y)."""
    if isinstance(phi, Col):
        return Not(phi) if phi.name == label else phi
    changed = {
        field.name: _flipped_part(getattr(phi, field.name), label)
        for field in dataclasses.fields(phi)  # type: ignore[arg-type]  # every row function is a dataclass
        if field.init
    }
    return dataclasses.replace(phi, **changed)  # type: ignore[type-var]


def _flipped_part(value: object, label: str) -> object:
    if isinstance(value, RowFn):
        return flipped(value, label)
    return tuple(_flipped_part(item, label) for item in value) if isinstance(value, tuple) else value


def _zero(phi: RowFn) -> RowFn:
    """A condition or a number as a number, zero where it is missing."""
    return Arith("*", phi, lit(1)).fill(0)
