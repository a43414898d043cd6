"""Everything about a database that is public."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal, TypeVar

from sulq.display import tables
from sulq.errors import QuestionError, SetupError
from sulq.language.domain import Category, Column, Schema
from sulq.language.estimator import Declaration, Estimator
from sulq.language.privacy import (
    BASIC_ASKS,
    Budget,
    Epsilon,
    EpsilonDelta,
    EpsilonKeys,
    Event,
    Loss,
    Queries,
    Rho,
    Split,
    SubLinear,
    Unit,
    basic_part,
    check_kind,
    normal_epsilon,
    plain,
)
from sulq.language.rows_choice import RowsChoice
from sulq.language.sampling import SamplingReport, sampling_report
from sulq.language.statistic import Graph
from sulq.language.sublinear import noise_for

SHOWN: Final = 5  # categories named before the rest are counted
MUCH: Final = 20  # an epsilon past this is worth a word
D = TypeVar("D", bound=Declaration)
Whose = Literal["everyone", "analyst", "reports"]


UNCERTIFIED: Final = "sums are not certified by the kernel: the promise rests on the plan"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Public facts of one table: its columns, its unique column, and whose its rows are.

    `person`: the column that names the person, where it is not the unit's own.
    `public`: rows that need no protection; `rows` is then their number.
    `references`: columns that name a row of another private table by its key, and that
    table; the owner's word, checked over all rows, that both rows are one person's.
    `graph`: the columns by which its rows are edges. `estimators`: functions that the owner has named, which analysts
    choose by name (SR5).
    """

    schema: Schema
    key: str | None = None
    public: bool = False
    rows: int | None = None
    person: str | None = None
    references: tuple[tuple[str, str], ...] = ()
    graph: Graph | None = None
    estimators: tuple[Estimator, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether nothing but its columns is declared."""
        return self == TableFacts(self.schema)

    @property
    def noted(self) -> str:
        """What else is said of it, beside its columns."""
        return ""

    def refers(self, column: str) -> str | None:
        """The table a column is declared to refer to."""
        return dict(self.references).get(column)

    def owner(self, unit: Unit) -> str | None:
        """The column that says whose a row is; None where the row itself is the person."""
        return self.person or unit.column

    def kept(self, unit: Unit) -> int | None:
        """How many rows of a person are kept, where a person may have more; None where every row is kept."""
        person = None if self.public else self.owner(unit)
        return None if person is None or self.key == person else unit.rows

    def altered(self, unit: Unit) -> int | None:
        """How many of its rows are one person's, at most; of a public one all, None where that is not known."""
        return self.rows if self.public else self.kept(unit) or 1


class Catalogue:
    """The tables of a dataset and whom their answers hide: all that a relation's shape follows from."""

    __slots__ = ()
    unit: Unit

    @property
    def every(self) -> tuple[TableFacts, ...]:
        """The tables."""
        raise NotImplementedError  # pragma: no cover - each has its own

    def table_of(self, name: str) -> TableFacts:
        """A table by its name; "" is the only one, or the first."""
        for table in self.every:
            if name in ("", table.schema.table):
                return table
        names = ", ".join(table.schema.table for table in self.every)
        raise QuestionError("unknown-table", f"No table {name[:80]!r} is registered here (there are: {names}).")

    def person_of(self, table: TableFacts) -> str | None:
        """The column that says whose a table's row is; None where the row itself is the person."""
        return table.owner(self.unit)

    def declared(self, name: str, *kinds: type[D]) -> tuple[TableFacts, D]:
        """What the owner has declared under a name, if it is of such a kind, and the table it is of."""
        known = [(table, item.name, item.certificate) for table in self.every for item in table.estimators]
        for table, own, told in known:
            if own == name and isinstance(told, kinds):
                return table, told
        names = ", ".join(own for _, own, told in known if isinstance(told, kinds)) or "none"
        what = " or ".join(kind.__name__ for kind in kinds)
        raise QuestionError("not-certified", f"The owner has declared no {what} of that name (there are: {names}).")

    def placed(self, table: TableFacts) -> bool:
        """Whether each row is a person and stands in a place that is public."""
        return self.unit.positions_are_public and self.person_of(table) is None

    def rows_of(self, table: TableFacts) -> int | None:
        """How many rows of a table are one person's, at most; of a public one all, None where that is not known."""
        return table.altered(self.unit)

    def kept_of(self, table: TableFacts) -> int | None:
        """How many rows of a person are kept, where a person may have more; None where every row is kept."""
        return table.kept(self.unit)


@dataclass(frozen=True, slots=True)
class Tables(Catalogue):
    """The tables alone, without a budget."""

    unit: Unit
    tables: tuple[TableFacts, ...]

    @property
    def every(self) -> tuple[TableFacts, ...]:
        """The tables."""
        return self.tables


@dataclass(frozen=True, slots=True)
class Heavy:
    """The noisy share of a table's persons who have more rows than are kept, once it was bought; within at 95%."""

    table: str
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        away = max(self.high - self.share, self.share - self.low)
        return f"about {_percent(self.share)} +- {_percent(away)} of persons have more rows than are kept"


@dataclass(frozen=True, slots=True)
class Facts(Catalogue):
    """Public facts: declarations, unit, budget and what remains of it; nothing read off a row.

    `whose`: what `spent` counts: the answers given to everyone, those given to this analyst alone, or, in the local
    model, what each report lost when it was given (SR19).
    """

    schema: Schema
    unit: Unit
    budget: Budget
    spent: Loss
    remaining: Loss
    size: int | None = None  # the owner's declared public size
    synthetic: bool = False
    durable: bool = True  # False: the ledger is in memory and forgotten at exit
    version: int = 1  # advanced by the owner's registration (SR12)
    tables: tuple[TableFacts, ...] = ()  # of a dataset of several tables, the first of them `schema`'s
    public_key: str = ""  # checks the signatures on receipts, in hexadecimal
    whose: Whose = "everyone"
    heavy: tuple[Heavy, ...] = ()  # of each table of which it was bought
    rho: Fraction | None = None  # what asks may still share among them, where the budget holds any
    certified: bool = True  # False: rows are not held as the kernel certifies; their sums rest on the plan
    split: Split | None = None  # how an EpsilonDelta budget is divided (SR26)
    proved: Loss | None = None  # the loss that is proved of the answers that `spent` counts; None: `spent` itself
    choice: RowsChoice | None = field(default=None, metadata={"wire": "set"})  # where the unit's rows were chosen
    # What was declared after the owner looked at exact counts over the rows, by table (SR28).
    looked: tuple[tuple[str, str], ...] = field(default=(), metadata={"wire": "set"})

    def counted(self, spend: EpsilonDelta) -> EpsilonDelta:
        """A spend as its rho is counted: of its delta that part which the budget has for it, beside added pairs.

        So a spend of the whole budget is one of all that the ledger holds, but for what it keeps for open keys.
        """
        if self.split is None or not self.split.basic_delta:
            return spend
        return EpsilonDelta(spend.exact, spend.exact_delta * (1 - basic_part(self.split)))

    def paired(self, event: Event, paid: Loss) -> Event:
        """A loss that is not pure with an (epsilon, delta), at which basic composition adds it, where the budget does.

        Its delta is the spend's or a part of the share for that, whichever is less (SR26).
        """
        if self.split is None or not self.split.basic_delta:
            return event
        delta = self.split.basic_delta / BASIC_ASKS
        delta = min(delta, paid.exact_delta) if isinstance(paid, EpsilonDelta) else delta
        basic = normal_epsilon(event.rho, event.draws, delta)
        return replace(event, basic=basic, delta=delta) if basic <= self.budget.exact else event  # past it none fits

    def event_of(self, spend: Loss) -> Event:
        """The loss that a spend would debit, whatever were asked for it: for a forecast, as it has no draws."""
        check_kind(spend, self.budget)
        match spend:
            case Epsilon() | EpsilonKeys():
                return Event(spend.exact, spend.exact**2 / 2)
            case Queries():
                return Event(None, Fraction(0), queries=spend.queries)
            case EpsilonDelta():
                spend = self.counted(spend)
        return self.paired(Event(None, spend.exact if isinstance(spend, Rho) else spend.rho), spend)

    @property
    def every(self) -> tuple[TableFacts, ...]:
        """The tables; of a dataset of one, that."""
        return self.tables or (TableFacts(self.schema),)

    @property
    def catalogue(self) -> Tables:
        """The tables alone, without the budget."""
        return Tables(self.unit, self.every)

    @property
    def fixed_size(self) -> int | None:
        """The declared number of rows, where no neighbour has another: each row is a person and stays one (SR6)."""
        return self.size if self.unit.neighbors == "replace_one" and self.unit.column is None else None

    @property
    def table(self) -> str:
        """The name the data was registered under."""
        return self.schema.table

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a careful reader of the declarations would point out (T93)."""
        found = []
        budget, size = self.budget, self.size
        if isinstance(budget, (EpsilonDelta, SubLinear)) and size is not None and budget.exact_delta * size >= 1:
            found.append("delta is at least 1/size: one person in the table may be given away outright")
        if not isinstance(budget, Rho) and budget.exact > MUCH:
            found.append(f"a budget past epsilon {MUCH} protects little")
        found += [self.after_looking] if self.looked else []
        return tuple(found)

    @property
    def after_looking(self) -> str:
        """What the owner declared after looking at exact counts over the rows, in words (SR28)."""
        named = [item if len(self.every) == 1 else f"{table}: {item}" for table, item in self.looked]
        return f"declared after looking at the data: {', '.join(dict.fromkeys(named))}" if named else ""

    @property
    def sampling(self) -> SamplingReport:
        """The noise of a SubLinear budget beside the sampling error of the declared number of people, by calibration.

        Raises:
            QuestionError: `size-secret`: no size is declared; `spend-kind`: the budget is no SubLinear one.
        """
        return sampling_report(self.budget, self.size)

    def _noise(self, budget: SubLinear) -> str:
        """How much noise a sum has, in words; or why none can be said."""
        try:
            told = noise_for(budget, self.size).report
        except SetupError as refusal:
            return f"{budget}: nothing can be answered. {refusal.message}"
        most = None if self.size is None else dict(self.sampling.capacity).get(budget.calibration)
        return told if most is None else f"{told} Up to {most:,} queries would have noise below the root of the size."

    def __str__(self) -> str:
        lines = [f"{self.table}: protects {self.unit}"]
        spent = f"budget {self.budget}; spent {self.spent}; left {self.remaining}"
        lost = f"each report lost {self.budget}; questions cost nothing more"
        lines.append(lost if self.whose == "reports" else spent)
        lines += [] if self.split is None else [f"delta: {delta_parts(self.split)}"]
        for table in self.every:
            if self.tables:
                key = "" if table.key is None else f", one row for each {table.key}"
                lines.append(f"table {table.schema.table}: {'public' if table.public else 'private'}{key}{table.noted}")
            columns = [(f"  {name}", brief(column, table.refers(name))) for name, column in table.schema.columns]
            lines.append(tables.text(("  column", "declared as"), columns))
            lines += [f"  {item}" for item in self.heavy if item.table == table.schema.table]
            if table.graph is not None:
                lines.append(f"  rows are edges: {', '.join(table.graph.columns)}")
            lines += [f"  estimator {item}" for item in table.estimators]
        if self.size is not None:
            lines.append(f"declared size {self.size}")
        if self.choice is not None:
            lines.append(f"rows a person: chosen from the noisy histogram of entry {self.choice.entry} (facts.choice)")
        if isinstance(self.budget, SubLinear):
            lines.append(self._noise(self.budget))
        lines += [f"caution: {caution}" for caution in self.cautions]
        if not self.certified:
            lines.append(UNCERTIFIED)
        if self.synthetic:
            lines.append("synthetic data: not private")
        if not self.durable:
            lines.append("the ledger is in memory and forgotten at exit")
        return "\n".join(lines)

    __repr__ = __str__


def delta_parts(split: Split) -> str:
    """What the parts of an EpsilonDelta budget's delta are for, in words."""
    order, added, keys = map(plain, (split.delta, split.basic_delta, split.key_delta))
    return f"{order} for asks summed at one order, {added} for asks added one by one, {keys} for open keys"


def _percent(part: float) -> str:
    return f"{100 * part:.0f}%" if part >= 0.1 or not part else f"{100 * part:.2g}%"


def brief(column: Column, refers_to: str | None = None) -> str:
    """A declared column on one line; of many categories the first few."""
    if refers_to is not None:
        return f"{brief(column)}, refers to {refers_to}"
    if not isinstance(column, Category):
        return repr(column).replace("lo=", "").replace("hi=", "").replace(", grid=None", "")
    named = ", ".join(map(repr, column.values[:SHOWN]))
    more = len(column.values) - SHOWN
    never = "" if column.missing else f", missing=False, default={column.values[int(column.filled)]!r}"
    return f"Category({named}, and {more} more{never})" if more > 0 else f"Category({named}{never})"
