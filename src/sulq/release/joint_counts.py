"""Counts of one table planned together: by groups, of single cells and of ranges, asked as one Gaussian design.

Each counting question is a product over columns: of some columns all values, each a group; of others those that a
condition holds for. The columns' cells are as coarse as the questions allow: a column that nobody groups by has one for
each set of values that no condition tells apart. Where the cells of all columns together are few the best strategy is
asked (`strategy.py`), else the interactions of the columns of each question (`design.py`).

Privacy: post-processing of one question, whose noise the plan prices; counts of missing values are in cells of their
    own, so no row is left out that a question apart would count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers import wire
from sulq.answers.released import Noise, Released
from sulq.language.domain import Bool, Category, Int, Schema
from sulq.language.facts import Facts
from sulq.language.kinds import Cells, Code, Floats, Integers, Truths
from sulq.language.law import GaussianLaw
from sulq.language.question import Question, Sums, Together
from sulq.language.relation import Table
from sulq.language.rowfn import Bins, Col, Compare, Each, IsIn, Lit, Logic, Lookup, Not, OrMissing, Relabel, RowFn
from sulq.language.rowfn.base import evaluate, known, truths, walk
from sulq.release.tables.design import CoefficientDesign, Read
from sulq.release.tables.interactions import Places, basis, inside, norms, own_sizes
from sulq.release.tables.noisy_tables import Coefficients
from sulq.release.tables.strategy import Strategy, strategy

MAX_STRATEGY_CELLS: Final = 256  # of all columns together, of which the best strategy is looked for
MAX_STRATEGY_COUNTS: Final = 2**13
MAX_COLUMN_VALUES: Final = 4096  # of a column that conditions speak of
MAX_AXIS_CELLS: Final = 512  # of a column in a design
MAX_DESIGN_COUNTS: Final = 2**16
MAX_COLUMNS: Final = 6  # of one question
ROUNDING: Final = 1 / 12  # the variance that whole counts add
PLAIN: Final = (Col, Lit, Compare, IsIn, Logic, Not, Each, Bins, Relabel, OrMissing)  # of conditions and keys


class _Values:
    """All values of one column as rows, the last one missing: what a condition on it is evaluated on."""

    def __init__(self, schema: Schema, name: str) -> None:
        self.schema, self.name = schema, name
        self.size = len(values(schema, name)) + 1
        self.seen: dict[int, Cells] = {}

    def codes(self, name: str) -> Cells:
        """The values; conditions were chosen to speak of no other column."""
        domain = self.schema.find(name)
        first = domain.low if isinstance(domain, Int) else 0
        return Cells(np.arange(first, first + self.size), np.arange(self.size) == self.size - 1)

    def person(self) -> Integers:
        """Of nobody."""
        return np.zeros(self.size, dtype=np.int64)

    def position(self) -> Integers:
        """Of no source."""
        return np.arange(self.size)


def values(schema: Schema, name: str) -> Sequence[object]:
    """The declared values of a column; none of a column that has too many, or no list of them."""
    match schema.find(name):
        case Category() as domain if len(domain.values) < MAX_COLUMN_VALUES:
            return domain.values
        case Bool():
            return (False, True)
        case Int() as domain if domain.high - domain.low < MAX_COLUMN_VALUES:
            return range(domain.low, domain.high + 1)
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class CountingQuestion:
    """A question as columns that it groups by, in order, and the values of columns that it counts.

    `groups`: of each such column the group of each value, -1 for none, and how many groups there are. `rest`: the
    conditions that are on no column alone.
    """

    groups: Mapping[str, tuple[Integers, int]]
    holds: Mapping[str, Truths]
    rest: tuple[RowFn, ...]
    over: Table

    @property
    def columns(self) -> set[str]:
        """All columns it speaks of."""
        return {*self.groups, *self.holds}

    @property
    def common(self) -> str:
        """What questions that are planned together have in common."""
        return wire.encode(self.over) + "".join(sorted(map(wire.encode, self.rest)))


def counting(question: Sums, facts: Facts) -> CountingQuestion | None:
    """The question as counts over declared values; None where it is none."""
    if not isinstance(question.over, Table) or len(question.values) != 1 or not _is_one(question.values[0]):
        return None
    schema = facts.table_of(question.over.name).schema
    groups: dict[str, tuple[Integers, int]] = {}
    for key in question.by:
        name, kind = _column(key, schema), key.kind(schema)
        if not name or name in groups or not isinstance(kind, Code):
            return None
        found = evaluate(key, _Values(schema, name))
        codes = np.asarray(found.values, dtype=np.int64)
        groups[name] = (codes if found.missing is None else np.where(found.missing, -1, codes)), kind.size
    holds: dict[str, Truths] = {}
    rest = []
    for part in () if question.where is None else _conjuncts(question.where):
        if name := _column(part, schema):
            holds[name] = known(*truths(part, _Values(schema, name))) & holds.get(name, True)
        else:
            rest.append(part)
    made = CountingQuestion(groups, holds, tuple(rest), question.over)
    fine = len(made.columns) <= MAX_COLUMNS and all(own.any() and not own[-1] for own in holds.values())
    return made if fine else None


def _column(fn: RowFn, schema: Schema) -> str:
    """The only column that a key or condition speaks of, if its values are listed; empty where there is none."""
    parts = [*walk(fn)]
    names = {part.name for part in parts if isinstance(part, Col)}
    fine = len(names) == 1 and all(isinstance(part, PLAIN) for part in parts)
    return next((name for name in names if fine and values(schema, name)), "")


def _is_one(value: RowFn) -> bool:
    return isinstance(value, Lit) and value.value == 1


def _conjuncts(condition: RowFn) -> list[RowFn]:
    if isinstance(condition, Logic) and condition.op == "and":
        return [part for item in condition.items for part in _conjuncts(item)]
    return [condition]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A column as a key, and in which of its cells each value is; the last value is the missing one."""

    name: str
    key: RowFn
    place: Integers

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.place.max()) + 1

    def rows(self, question: CountingQuestion) -> Integers:
        """What a question counts of the column: a row for each group, or one; a column for each cell."""
        many = len(self.place)
        codes, size = question.groups.get(self.name, (np.zeros(many, dtype=np.int64), 1))
        held = question.holds.get(self.name, np.ones(many, dtype=np.bool_)) & (codes >= 0)
        found = np.zeros((size, self.size), dtype=np.int64)
        found[codes[held], self.place[held]] = 1
        return found


def axis(name: str, questions: Sequence[CountingQuestion], schema: Schema) -> Axis:
    """A column with one cell for all values that no question tells apart; that of the missing value is the last."""
    domain, many = schema.find(name), len(values(schema, name))
    told = [question.holds[name].astype(np.int64) for question in questions if name in question.holds]
    told += [question.groups[name][0] for question in questions if name in question.groups]
    _, first, place = np.unique(np.stack(told), axis=1, return_index=True, return_inverse=True)
    order = np.argsort(np.where(first == first[place[many]], many, first))  # by their first values
    found = np.argsort(order)[place] if len(first) > 1 else np.arange(many + 1)
    labels = [None if cell == found[-1] else int(cell) for cell in found[:-1].tolist()]
    whole = Col(name) if isinstance(domain, Category) else Each(Col(name))
    if labels == [*range(many)]:
        return Axis(name, OrMissing(whole), found)
    if not isinstance(domain, Int):
        return Axis(name, OrMissing(Relabel(whole, tuple(labels))), found)
    starts = [i for i in range(many) if not i or labels[i] != labels[i - 1]]
    edges = [domain.low + i for i in (*starts, many)]
    return Axis(name, OrMissing(Relabel(Bins(Col(name), tuple(edges)), tuple(labels[i] for i in starts))), found)


@dataclass(frozen=True, slots=True, eq=False)
class JointCounts:
    """Counting questions of one table as one design.

    `question`: what is asked instead of them. `read`: each question's counts, with the noise of its noisiest one, from
    the answers' numbers and noise.
    """

    question: Together
    counts: tuple[int, ...]
    found: Callable[[Sequence[Read]], Iterable[tuple[Floats, Floats]]]

    def read(self, read: Sequence[Read]) -> list[Released]:
        """Whole counts, as the questions apart would release them."""
        made = []
        for numbers, variances in self.found(read):
            noise = Noise(GaussianLaw(_scale(float(variances.max()) + ROUNDING)), Fraction(1), 1)
            made.append(Released(np.rint(numbers).astype(np.int64).reshape(-1, 1), (noise,)))
        return made

    def foreseen(self, noise: Sequence[Sequence[Noise]]) -> list[Noise]:
        """The noise of each question's counts, from the noise of what is asked."""
        zeros = [(np.zeros(count), own) for count, own in zip(self.counts, noise, strict=True)]
        return [one.noise[0] for one in self.read(zeros)]


def _scale(variance: float) -> Fraction:
    return Fraction(math.sqrt(variance)).limit_denominator(10**9)


Designs = list[tuple[tuple[int, ...], "JointCounts"]]


def joint_designs(questions: Mapping[int, Sums], weights: Mapping[int, float], facts: Facts) -> Iterator[Designs]:
    """Designs for counting questions, each with their places: of one table and one other condition.

    Several ways, of which one is taken: all in one design, and a design for columns that are asked together.
    """
    alike: dict[str, dict[int, CountingQuestion]] = {}
    for place, question in questions.items():
        one = counting(question, facts)
        if one is not None:
            alike.setdefault(one.common, {})[place] = one
    groups = [tuple(own) for own in alike.values()]
    counted = {place: one for own in alike.values() for place, one in own.items()}
    apart = [each for group in groups for each in _connected(group, counted)]
    for way in (groups,) if groups == apart else (groups, apart):
        found = []
        for places in way:
            own, weighed = [counted[i] for i in places], [weights[i] for i in places]
            made = joint_counts(own, weighed, facts) if len(places) > 1 else None
            found += [] if made is None else [(places, made)]
        if found:
            yield found


def _connected(places: Sequence[int], questions: Mapping[int, CountingQuestion]) -> list[tuple[int, ...]]:
    """The questions that share columns, or share them with others that do; one without columns goes to the first."""
    found: list[tuple[set[str], list[int]]] = []
    for place in sorted(places, key=lambda i: -len(questions[i].columns)):
        columns = questions[place].columns
        near = [each for each in found if each[0] & columns] or ([] if columns else found[:1])
        joined = set().union(columns, *(own for own, _ in near)), [place, *(i for _, own in near for i in own)]
        found = [each for each in found if each not in near]
        found.append(joined)
    return [tuple(sorted(own)) for _, own in found]


def joint_counts(questions: Sequence[CountingQuestion], weights: Sequence[float], facts: Facts) -> JointCounts | None:
    """One design for all of them, by how much the deviation of each one's counts weighs; None where they are too many.

    Privacy: from the questions, declarations and the unit alone.
    """
    schema = facts.table_of(questions[0].over.name).schema
    names = sorted({name for question in questions for name in question.columns})
    axes = [axis(name, questions, schema) for name in names]
    if any(own.size > MAX_AXIS_CELLS for own in axes):
        return None
    rows = [[own.rows(question) for own in axes] for question in questions]
    many = sum(math.prod(len(own) for own in each) for each in rows)
    if not axes or many > MAX_DESIGN_COUNTS:
        return None
    orders = [_order(one, names, own) for one, own in zip(questions, rows, strict=True)]
    if math.prod(own.size for own in axes) <= MAX_STRATEGY_CELLS and many <= MAX_STRATEGY_COUNTS:
        of_counts = _strategy(axes, rows, weights)
        if of_counts is None:
            return None
        made, question = of_counts
        asked: Question = question
        counts, found = [len(made.asked)], functools.partial(_of_strategy, made, orders)
    else:
        of = [tuple(i for i, name in enumerate(names) if name in question.columns) for question in questions]
        design = _interactions(axes, of, rows, weights, paired=facts.unit.neighbors == "replace_one")
        asked = design.question([own.key for own in axes], None, pure=False)
        counts, found = design.counts, functools.partial(_of_interactions, design, of, rows, orders)
    return JointCounts(_over(asked, questions[0]), tuple(counts), found)


def _over(asked: Question, common: CountingQuestion) -> Together:
    """The question, of the rows that the counts are of."""
    rest = common.rest
    where = None if not rest else rest[0] if len(rest) == 1 else Logic("and", rest)
    several = asked.questions if isinstance(asked, Together) else (asked,)
    made = tuple(replace(one, where=where, over=common.over) for one in several if isinstance(one, Sums))
    return Together(made, asked.shares if isinstance(asked, Together) else ())


def _order(question: CountingQuestion, names: Sequence[str], rows: Sequence[Integers]) -> Integers:
    """Where each of a question's groups, the last key fastest, is among the counts, the last column fastest."""
    wanted = [names.index(name) for name in question.groups]
    left = [i for i in range(len(names)) if i not in wanted]
    shape = [len(own) for own in rows]
    return np.arange(math.prod(shape)).reshape(shape).transpose([*wanted, *left]).ravel()


def _strategy(
    axes: Sequence[Axis], rows: Sequence[Sequence[Integers]], weights: Sequence[float]
) -> tuple[Strategy, Sums] | None:
    """The best strategy, asked as one table that is read at all columns; None where none is found."""
    work = [functools.reduce(np.kron, own) for own in rows]
    query = np.repeat(np.arange(len(work)), [len(own) for own in work])
    made = strategy(np.concatenate(work), query, np.array(weights))
    if made is None:
        return None
    table = tuple(map(tuple, made.asked.T.tolist()))
    return made, Sums((Lookup(tuple(own.key for own in axes), table),))


def _of_strategy(made: Strategy, orders: Sequence[Integers], read: Sequence[Read]) -> Iterable[tuple[Floats, Floats]]:
    ((numbers, (noise,)),) = read
    found, variances = made.reads @ numbers.ravel(), made.variances * noise.deviation**2
    start = 0
    for order in orders:
        yield found[start + order], variances[start + order]
        start += len(order)


def _interactions(
    axes: Sequence[Axis],
    of: Sequence[Places],
    rows: Sequence[Sequence[Integers]],
    weights: Sequence[float],
    *,
    paired: bool,
) -> CoefficientDesign:
    """The interactions of each question's columns, with noise by how much its counts weigh."""
    sizes = tuple(own.size for own in axes)
    wanted = dict.fromkeys(of, 0.0)
    for own, weight, each in zip(of, weights, rows, strict=True):
        wanted[own] += weight * math.sqrt(math.prod(int(each[place].sum(axis=1).max()) for place in own))
    return CoefficientDesign.of(tuple(wanted), sizes, tuple(wanted.values()), pure=False, paired=paired)


def _of_interactions(
    design: CoefficientDesign,
    of: Sequence[Places],
    rows: Sequence[Sequence[Integers]],
    orders: Sequence[Integers],
    read: Sequence[Read],
) -> Iterable[tuple[Floats, Floats]]:
    table = design.read(read)
    for own, each, order in zip(of, rows, orders, strict=True):
        numbers, variances = _sums(table, own, [each[place].astype(np.float64) for place in own])
        yield numbers.ravel()[order], variances.ravel()[order]


def _sums(table: Coefficients, own: Places, rows: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Sums of a marginal's cells by a matrix for each of its columns, and their variances."""
    numbers = table.marginal(own)
    for i, matrix in enumerate(rows):
        numbers = np.moveaxis(np.tensordot(matrix, numbers, axes=(1, i)), 0, i)
    variances = np.zeros(numbers.shape)
    for part in inside(own):
        if part not in table.deviations:
            continue
        moved = table.deviations[part].reshape([size - 1 for size in own_sizes(part, table.sizes)]) ** 2
        for i, (place, matrix) in enumerate(zip(own, rows, strict=True)):
            size = table.sizes[place]
            if place in part:
                each = (matrix @ basis(size)[1:].T / norms(size)[1:]) ** 2
                moved = np.moveaxis(np.tensordot(each, moved, axes=(1, i)), 0, i)
            else:
                moved = np.expand_dims(moved, i) * ((matrix.sum(axis=1) / size) ** 2).reshape(
                    [-1 if j == i else 1 for j in range(moved.ndim + 1)]
                )
        variances += moved
    return numbers, variances
