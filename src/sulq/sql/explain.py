"""What a query, or a workload of several, would ask and cost and how accurate it would be, in words.

EXPLAIN reads no row and spends nothing: the questions come from the text and the
declarations, sensitivity and noise from the plan (`foresee`), the accuracy of what
is more than a sum from made-up rows (sql/forecast.py).
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.answers.auto_bounds import total_spent
from sulq.answers.budget import BudgetLeft, BudgetReport
from sulq.answers.plan import Part, Plan
from sulq.display.numbers import figure
from sulq.language.facts import Facts
from sulq.language.kinds import Scalar
from sulq.language.law import (
    BinomialLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    PassedGaussianLaw,
    PassedLaplaceLaw,
)
from sulq.language.privacy import Loss, plain
from sulq.language.question import Above, Choose, Holistic, OpenSums, Single, Together
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Bernstein, Case, Col, Each, IsMissing, Lit, Not, Outer, RowFn, Vector
from sulq.language.rowfn.base import walk
from sulq.language.shape import shape

SUPPOSED_ROWS: Final = (100, 1_000, 10_000)  # rows a group might have
LEVEL: Final = 0.95
LAW_NAMES: Final[dict[type, str]] = {
    LaplaceLaw: "discrete Laplace noise",
    GaussianLaw: "discrete Gaussian noise",
    BinomialLaw: "coin noise",
    PassedGaussianLaw: "discrete Gaussian noise, cut off at a threshold",
    PassedLaplaceLaw: "discrete Laplace noise, cut off at a threshold",
    FlipLaw: "permute-and-flip choice",
    ExponentialLaw: "exponential choice",
}


@dataclass(frozen=True, slots=True)
class Foretold:
    """How far one column of the answer may be off: for each number of rows a group is supposed to have.

    `near`: how near it is in rank, where no interval is bought that tells it in its own unit.
    """

    name: str
    widths: tuple[float, ...]
    near: str = ""

    @property
    def sure(self) -> bool:
        """Whether the accuracy is known beforehand, whatever the rows are; what is shown as whole may be half off."""
        return max(self.widths) - min(self.widths) <= max(0.05 * min(self.widths), 0.51 * (min(self.widths) > 1))


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """A query, explained: `plan` is what would be asked, `columns` how accurate the answer would be."""

    text: str
    plan: Plan | None  # None: nothing private is asked
    facts: Facts
    columns: tuple[Foretold, ...]
    rows: tuple[int, ...] = SUPPOSED_ROWS
    beta: float = 0.05
    notes: tuple[str, ...] = ()
    left: BudgetLeft | None = None  # after asking; None where it would be refused, or is not known
    fits: bool = True
    search: Plan | None = None  # for bounds, before `plan`, at a debit of its own

    @property
    def after(self) -> BudgetReport | None:
        """The budget as it would stand after asking."""
        return None if self.left is None else BudgetReport.of(self.facts).after(self.left)

    @property
    def price(self) -> Loss | None:
        """What asking would cost, the search for bounds with it."""
        if self.plan is None or self.search is None:
            return None if self.plan is None else self.plan.spend
        return total_spent(self.search.spend, self.plan.spend)

    def to_dict(self) -> dict[str, list[object]]:
        """The foretold accuracies: a row for each column of the answer."""
        found: dict[str, list[object]] = {"column": [column.name for column in self.columns]}
        for i, rows in enumerate(self.rows):
            found[f"at {rows} rows"] = [column.widths[i] for column in self.columns]
        return found

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        if self.plan is None:
            yield "nothing private is asked: the answer costs nothing"
            return
        yield f"price {self.price}; protects {self.plan.unit}; guarantee {self.plan.guarantee}"
        if self.search is not None:
            yield f"first, for {self.search.spend}: a search for where values lie, by counts of them in public bins"
            yield f"then, for {self.plan.spend}, of values clipped to there; foretold for the declared bounds, at worst"
        asked = self.plan.question
        questions = asked.questions if isinstance(asked, Together) else (asked,)
        shares = (asked.shares if isinstance(asked, Together) else ()) or (Fraction(1),) * len(questions)
        for i, (question, part) in enumerate(zip(questions, self.plan.parts, strict=True)):
            which = f"question {i + 1} of {len(questions)}, {float(shares[i] / sum(shares)):.0%} of the spend"
            yield f"{which if len(questions) > 1 else 'question'}: {_asked(question, part, self.facts)}"
            yield from (f"  {line}" for line in _why(question, part, self.facts))
        yield from self._accuracies()
        yield from self._budget()
        yield from self.notes
        yield from (self.facts.after_looking,) if self.facts.looked else ()

    def _budget(self) -> Iterator[str]:
        """What is left, and what asking would leave."""
        now = f"budget: {self.facts.remaining} is left"
        if not self.fits:
            yield f"{now}, which is less than this costs: it would be refused, free"
        elif self.after is not None:
            yield f"{now}, {self.after.remaining} would be after this ({self.after.buys})"

    def _accuracies(self) -> Iterator[str]:
        if not self.columns:
            return
        yield f"expected accuracy, at {1 - self.beta:.0%}:"
        wide = max(len(column.name) for column in self.columns)
        for column in self.columns:
            cases = zip(self.rows, column.widths, strict=True)
            each = ", ".join(f"+- {figure(width)} if {rows:,}" for rows, width in cases) + " rows a group"
            off = f"+- {figure(max(column.widths))}" if column.sure else each
            yield f"  {column.name.ljust(wide)}  {f'no interval is bought: {column.near}' if column.near else off}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self), quote=False)}</pre>"


def _asked(question: Single, part: Part, facts: Facts) -> str:
    """What is asked, in a line."""
    if isinstance(question, Holistic):
        return f"{type(question.statistic).__name__} over {words(question.over, facts)}"
    counts = question.counts if isinstance(question, (Choose, Above)) else question
    over = f"over {words(counts.over, facts)}"
    if counts.where is not None:
        over += " where a condition holds"
    keys = [value_name(key) for key in (counts.by[:-1] if isinstance(question, Choose) else counts.by)]
    if isinstance(question, OpenSums):
        return f"{over}, by {', '.join(keys)}: groups are found in the data, those of enough people are shown"
    by = f", by {', '.join(keys)} ({part.cells:,} cells)" if keys else ""
    choice = f"a choice of one of {len(part.tally.by[-1].labels):,} candidates, " if part.score else ""
    return f"{choice}{over}{by}"


def _why(question: Single, part: Part, facts: Facts) -> Iterator[str]:
    """Each value with its bounds, how far one person moves its sums and why, and the noise that hides it."""
    if isinstance(question, Holistic):
        yield from part.lines()
        return
    counts = question.counts if isinstance(question, (Choose, Above)) else question
    found = shape(counts.over, facts)
    kept = f"a person has at most {found.rows:,} {'row' if found.rows == 1 else 'rows'} here"
    yield kept if found.rows else "no row here is anyone's own; it gets noise all the same"
    if part.people is not None:
        yield f"people: {_hidden(part, 0, part.people)}"
        yield f"a group is shown if its noisy number of people is above {part.people.threshold:,}"
    if part.score is not None:
        yield f"score {type(part.score).__name__}: {_hidden(part, 0, part.laws[0])}"
        return
    first = int(part.people is not None)
    for i, (block, law) in enumerate(zip(part.tally.blocks, part.laws, strict=True)):
        name = _value(block.fn)
        if isinstance(block.fn.kind(found.schema), Scalar) and not isinstance(block.fn, Lit):
            low, high = (figure(float(end[0] * block.step)) for end in (block.low, block.high))
            name += f" in [{low}, {high}]"
        yield f"{name}: {_hidden(part, i + first, law)}"


def _hidden(part: Part, i: int, law: Law) -> str:
    noise = part.noise[i]
    off = figure(float(law.accuracy(1 - LEVEL) * noise.step))
    within = f"each sum within {off}" if part.score is None else f"score within {off} of the best"
    name = LAW_NAMES.get(type(law), type(law).__name__)
    return f"{part.norm} sensitivity {plain(part.sensitivity[i])}, {name}, {within} at {LEVEL:.0%}"


def value_name(fn: RowFn) -> str:
    """A short name: the columns a row function reads."""
    if isinstance(fn, Each) and isinstance(fn.item, IsMissing):
        return f"whether {value_name(fn.item)} is missing"
    names = dict.fromkeys(_short(part.name) for part in walk(fn) if isinstance(part, Col))
    return " and ".join(names) or "a constant"


def _short(name: str) -> str:
    """A column's own name: one that was made up for a derived table ends in it."""
    return name.rpartition(".")[2] or name


def _value(fn: RowFn) -> str:
    """What is summed, in a few words."""
    match fn:
        case Lit():
            return "rows"
        case Not(item=IsMissing(item=inner)):
            return f"rows with {value_name(inner)}"
        case Bernstein(item=IsMissing(item=inner)):
            return f"rows with and without {value_name(inner)}"
        case Bernstein(item=inner):
            return f"{value_name(inner)}, as {fn.degree + 1} one-sided sums" + (
                " and rows without" if fn.missing else ""
            )
        case Outer(vector=inner):
            return f"products of {_value(inner)}"
        case Vector():
            return " and ".join(value_name(item) for item in fn.items)
        case Case(branches=((_, inner),)):
            return f"{value_name(inner)} where a filter holds"
    return value_name(fn)


def words(relation: Relation, facts: Facts) -> str:
    """A relation in words."""
    match relation:
        case Table():
            return relation.name or facts.table
        case Where():
            return f"some rows of {words(relation.source, facts)}"
        case Select():
            return words(relation.source, facts)
        case Join():
            how = "left joined" if relation.how == "left" else "joined"
            on = [f"{_short(left)} = {_short(right)}" for left, right in relation.on]
            on += ["the same person"] * relation.person
            both = f"{words(relation.left, facts)} {how} with {words(relation.right, facts)}"
            return f"{both} on {' and '.join(on)}" if on else both
        case PerPerson():
            each = " and ".join(["person", *map(_short, relation.keys)])
            return f"one row for each {each} of {words(relation.source, facts)}"
        case Distinct():
            return f"different rows of {words(relation.source, facts)}"
        case Union():
            return " and ".join(words(part, facts) for part in relation.relations)
