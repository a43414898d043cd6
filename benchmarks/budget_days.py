"""Three days of 30 asks each, as people work, written down before any of them was counted; and random histories."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, NoReturn

import pyarrow as pa

import sulq
from sulq import Category, Epsilon, EpsilonDelta, Int, OpenSums, Real, Rho, Sums, Text, col, lit
from sulq.answers.plan import Plan
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.compile.plan import draw
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question
from sulq.language.rowfn import Nearest, Vector, bins

BUDGET = EpsilonDelta(3, 1e-6)


class Priced(NamedTuple):
    """A question and what is paid for it."""

    question: Question
    spend: Loss


@dataclass(frozen=True)
class Day:
    """What one person asks in a day, in order, of which table."""

    name: str
    columns: Mapping[str, object]
    asks: Sequence[Callable[[NamedAsks], object]]

    def opened(self, **shares: Fraction) -> Database:
        """A table of one row, which prices do not depend on, under a new budget; `shares`: how delta is divided."""
        row = {name: [_cell(column)] for name, column in self.columns.items()}
        return sulq.connect(pa.table(row), columns=self.columns, budget=BUDGET, table="t", synthetic=True, **shares)

    def priced(self, facts: Facts) -> list[Priced]:
        """The questions that the asks put, none of them asked."""
        found = []
        for ask in self.asks:
            try:
                ask(NamedAsks(_Notebook(facts)))
            except _NotedError as noted:
                found.append(noted.priced)
        return found


class _NotedError(Exception):
    def __init__(self, priced: Priced) -> None:
        self.priced = priced


@dataclass(frozen=True)
class _Notebook:
    """An oracle that notes the question and answers nothing."""

    facts: Facts

    def foresee(self, question: Question, *, spend: Loss) -> Plan:
        return draw(question, self.facts, spend)

    def ask(self, question: Question, *, spend: Loss, **_: object) -> NoReturn:
        raise _NotedError(Priced(question, spend))


def _cell(column: object) -> object:
    match column:
        case Category():
            return column.values[0]
        case Text():
            return "a"
    return 1


WARDS = Category([f"ward {i}" for i in range(12)])
PATIENTS = {"age": Int(0, 110), "stay": Int(0, 90), "cost": Int(0, 50_000), "sex": Category(["f", "m"]), "ward": WARDS}
PATIENTS |= {"diagnosis": Text()}
OLD, LONG = col("age") >= 65, col("stay") > 14

HOSPITAL = Day(
    "hospital analyst",
    PATIENTS,
    (
        lambda db: db.count(spend=Epsilon(0.05)),
        lambda db: db.count(OLD, spend=Epsilon(0.05)),
        lambda db: db.mean("stay", spend=Epsilon(0.1)),
        lambda db: db.mean("age", spend=Epsilon(0.1)),
        lambda db: db.count(by="ward", spend=Rho(0.002)),
        lambda db: db.count(LONG, spend=Epsilon(0.1)),
        lambda db: db.count(OLD & LONG, spend=Epsilon(0.2)),
        lambda db: db.mean("cost", spend=Epsilon(0.2)),
        lambda db: db.mean("stay", by="ward", spend=Rho(0.005)),
        lambda db: db.median("stay", spend=Epsilon(0.1)),
        lambda db: db.ask(OpenSums((), None, (col("diagnosis"),)), spend=EpsilonDelta(0.2, 1e-8), law="gaussian"),
        lambda db: db.count(col("age") < 18, spend=Epsilon(0.05)),
        lambda db: db.mean("stay", where=OLD, spend=Epsilon(0.1)),
        lambda db: db.mean("cost", where=OLD, spend=Epsilon(0.2)),
        lambda db: db.count(OLD, by="ward", spend=Rho(0.002)),
        lambda db: db.count(by=["sex", "ward"], spend=Rho(0.002)),
        lambda db: db.count(col("sex") == "f", spend=Epsilon(0.05)),
        lambda db: db.count(col("cost") > 20_000, spend=Epsilon(0.1)),
        lambda db: db.mean("age", where=LONG, spend=Epsilon(0.1)),
        lambda db: db.median("cost", spend=Epsilon(0.1)),
        lambda db: db.mean("cost", by="ward", spend=Rho(0.005)),
        lambda db: db.count(LONG, by="ward", spend=Rho(0.002)),
        lambda db: db.ask(OpenSums((), OLD, (col("diagnosis"),)), spend=EpsilonDelta(0.2, 1e-8), law="gaussian"),
        lambda db: db.count((col("age") < 18) & LONG, spend=Epsilon(0.2)),
        lambda db: db.mean("stay", where=col("sex") == "f", spend=Epsilon(0.1)),
        lambda db: db.mean("cost", where=LONG, spend=Epsilon(0.2)),
        lambda db: db.count(col("stay") == 0, spend=Epsilon(0.1)),
        lambda db: db.count(OLD, by=["sex", "ward"], spend=Rho(0.002)),
        lambda db: db.count(by="sex", spend=Rho(0.002)),
        lambda db: db.count(col("stay") > 30, spend=Epsilon(0.1)),
    ),
)

REGIONS, TRADES = Category([f"region {i}" for i in range(16)]), Category([f"trade {i}" for i in range(20)])
PEOPLE = {"age": Int(0, 110), "income": Int(0, 200_000), "sex": Category(["f", "m"]), "region": REGIONS}
PEOPLE |= {"trade": TRADES, "household": Int(1, 12)}
FINE, COARSE = ("region", "trade", "sex"), ("region", "sex")
DECADES = bins(col("age"), range(0, 111, 10))
EARNS = col("income") > 0

OFFICE = Day(
    "statistical office",
    PEOPLE,
    (
        lambda db: db.count(spend=Epsilon(0.05)),
        lambda db: db.count(by="region", spend=Rho(0.001)),
        lambda db: db.count(by="trade", spend=Rho(0.001)),
        lambda db: db.count(by=COARSE, spend=Rho(0.001)),
        lambda db: db.count(by=FINE, spend=Rho(0.005)),
        lambda db: db.count(by=DECADES, spend=Rho(0.001)),
        lambda db: db.count(by=[DECADES, "region"], spend=Rho(0.002)),
        lambda db: db.count(EARNS, spend=Epsilon(0.05)),
        lambda db: db.sum("income", spend=Epsilon(0.1)),
        lambda db: db.mean("income", by="region", spend=Rho(0.002)),
        lambda db: db.mean("income", by="trade", spend=Rho(0.002)),
        lambda db: db.mean("income", by=COARSE, spend=Rho(0.005)),
        lambda db: db.sum("income", by="region", spend=Rho(0.002)),
        lambda db: db.count(EARNS, by="region", spend=Rho(0.001)),
        lambda db: db.count(EARNS, by="trade", spend=Rho(0.001)),
        lambda db: db.count(EARNS, by=COARSE, spend=Rho(0.001)),
        lambda db: db.count(EARNS, by=FINE, spend=Rho(0.005)),
        lambda db: db.count(by="household", spend=Rho(0.001)),
        lambda db: db.count(by=["household", "region"], spend=Rho(0.002)),
        lambda db: db.count(col("age") < 18, spend=Epsilon(0.05)),
        lambda db: db.count(col("age") < 18, by="region", spend=Rho(0.001)),
        lambda db: db.count(col("age") >= 65, by="region", spend=Rho(0.001)),
        lambda db: db.count(col("age") >= 65, spend=Epsilon(0.05)),
        lambda db: db.sum("household", spend=Epsilon(0.1)),
        lambda db: db.mean("household", by="region", spend=Rho(0.002)),
        lambda db: db.mean("age", by="region", spend=Rho(0.002)),
        lambda db: db.mean("age", by=COARSE, spend=Rho(0.002)),
        lambda db: db.mean("income", by=["trade", "sex"], spend=Rho(0.005)),
        lambda db: db.count(by=["trade", "sex"], spend=Rho(0.001)),
        lambda db: db.count(by=[DECADES, "sex"], spend=Rho(0.001)),
    ),
)

SHOP = {"visits": Int(0, 500), "spent": Real(0, 1000), "minutes": Real(0, 240), "city": Text()}
SHOP |= {"plan": Category(["free", "plus", "team"])}
POINT = Vector((col("spent") / 1000, col("minutes") / 240))


def _step(moved: float) -> Callable[[NamedAsks], object]:
    """One step of k-means about four centres: counts and sums of each cluster."""
    centres = tuple((x + moved, y) for x in (0.2, 0.6) for y in (0.25, 0.75))
    return lambda db: db.ask(Sums((lit(1), POINT), None, (Nearest(POINT, centres),)), spend=Rho(0.004))


SCIENTIST = Day(
    "data scientist",
    SHOP,
    (
        lambda db: db.histogram("spent", 20, spend=Rho(0.002)),
        lambda db: db.histogram("minutes", 24, spend=Rho(0.002)),
        lambda db: db.histogram("visits", 50, spend=Rho(0.002)),
        lambda db: db.histogram("plan", spend=Epsilon(0.1)),
        lambda db: db.quantile("spent", 0.5, spend=Epsilon(0.1)),
        lambda db: db.quantile("spent", 0.95, spend=Epsilon(0.1)),
        lambda db: db.quantile("minutes", 0.5, spend=Epsilon(0.05)),
        lambda db: db.ask(OpenSums((), None, (col("city"),)), spend=EpsilonDelta(0.3, 2e-8), law="gaussian"),
        lambda db: db.covariance(["spent", "minutes", "visits"], spend=Rho(0.005)),
        *(_step(0.02 * i) for i in range(5)),
        lambda db: db.histogram("spent", 20, where=col("plan") == "plus", spend=Rho(0.002)),
        lambda db: db.histogram("minutes", 24, where=col("plan") == "plus", spend=Rho(0.002)),
        lambda db: db.histogram("spent", 10, where=col("visits") > 10, spend=Epsilon(0.1)),
        lambda db: db.quantile("spent", 0.5, where=col("plan") == "plus", spend=Epsilon(0.1)),
        lambda db: db.quantile("minutes", 0.95, spend=Epsilon(0.1)),
        lambda db: db.ask(
            OpenSums((), col("visits") > 10, (col("city"),)), spend=EpsilonDelta(0.3, 2e-8), law="gaussian"
        ),
        *(_step(0.1 + 0.02 * i) for i in range(5)),
        lambda db: db.histogram("visits", 50, where=col("plan") == "team", spend=Rho(0.002)),
        lambda db: db.histogram("plan", where=col("visits") > 10, spend=Epsilon(0.1)),
        lambda db: db.histogram("minutes", 12, where=col("visits") > 10, spend=Epsilon(0.1)),
        lambda db: db.quantile("visits", 0.5, spend=Epsilon(0.05)),
        lambda db: db.ask(
            OpenSums((), col("plan") == "plus", (col("city"),)), spend=EpsilonDelta(0.3, 2e-8), law="gaussian"
        ),
    ),
)

DAYS = (HOSPITAL, OFFICE, SCIENTIST)  # to add one: 30 asks, and its name here
COUNT, OPEN = Sums((lit(1),)), OpenSums((), None, (col("city"),))


@dataclass(frozen=True)
class History:
    """A random budget, whether a table has open keys, a few kinds of asks, and the order they come in."""

    budget: EpsilonDelta
    open_keys: bool
    kinds: Sequence[Priced]
    order: Sequence[int]

    @property
    def mixed(self) -> bool:
        """Whether pure asks and others are among them."""
        return len({isinstance(self.kinds[place].spend, Epsilon) for place in self.order}) > 1


def history(draw: random.Random, longest: int = 3_000) -> History:
    """Budgets over epsilon .1 to 10 and delta 1e-12 to 1e-5; asks from a 300th to a fifth of them, in any order."""
    epsilon, delta = _figure(10 ** draw.uniform(-1, 1)), _figure(10 ** draw.uniform(-12, -5))
    budget, open_keys = EpsilonDelta(epsilon, delta), draw.random() < 0.5
    whole = [draw.choice(["pure", "rho", "both"])] * 2 + (["keys"] if open_keys else [])
    kinds = []
    for _ in range(draw.randint(2, 10)):
        size = Fraction(repr(epsilon)) * Fraction(repr(_figure(10 ** draw.uniform(-2.5, -0.7))))
        kind = draw.choice(whole)
        kind = draw.choice(["pure", "rho"]) if kind == "both" else kind
        if kind == "pure":
            kinds.append(Priced(COUNT, Epsilon(size)))
        elif kind == "rho":
            kinds.append(Priced(COUNT, Rho(EpsilonDelta(size, delta).rho)))
        else:
            part = Fraction(repr(_figure(10 ** draw.uniform(-3, -1.3))))
            kinds.append(Priced(OPEN, EpsilonDelta(size, budget.exact_delta * part)))
    weights = [draw.random() for _ in kinds]
    return History(budget, open_keys, kinds, draw.choices(range(len(kinds)), weights, k=longest))


def _figure(value: float) -> float:
    """Three figures, as people write them."""
    return float(f"{value:.3g}")
