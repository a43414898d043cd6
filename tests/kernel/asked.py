"""Honest requests at the kernel's own door over neighbouring tables, and what is lost, from the inputs of the noise.

Requests are made by asking real questions of the planner and the proposers: what is seen of them is what the curator
hands to `Kernel.check`. Their callables lead to whichever of the neighbouring tables is asked at the moment.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit, col, lit
from sulq.curator.run import Rows
from sulq.errors import CuratorError, QuestionError
from sulq.kernel.facts import Draw, Event
from sulq.kernel.laws import (
    AboveLaw,
    BinomialLaw,
    BitLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    MetricLaw,
    PassedGaussianLaw,
    PassedLaplaceLaw,
    PassedLaw,
    own,
)
from sulq.kernel.ledger.chain import Receipt, Seal
from sulq.kernel.mechanisms import release, reveal
from sulq.kernel.private import Private
from sulq.kernel.run import Checked, Kernel
from sulq.language.privacy import EpsilonKeys
from sulq.language.question import Above, Choose, Holistic, OpenSums, Sums, Together
from sulq.language.relation import Distinct, Join, PerPerson, Table, Union
from sulq.language.rowfn import Bernstein, Bins, Vector, lookup, nearest, outer, vector, within_ball
from sulq.language.score import Contrast, Diagonal, Distance, Linear, NegAbs, NegL1, NegMaxAbs, Rank
from sulq.language.sublinear import noise_for
from sulq.sources.duckdb.engine import DuckEngine
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given

Request = tuple[tuple[Any, ...], Event]
Call = tuple[Any, Any]  # a law, or the laws of groups, and the exact numbers that its noise was to hide

COLUMNS = {
    "rows": {
        "x": sulq.Int(0, 3),
        "y": sulq.Real(-1, 1),
        "f": sulq.Bool(),
        "g": sulq.Category(tuple("abc")),
        "note": sulq.Text(),
        "u": list(range(4)),
        "v": list(range(4)),
    },
    "visits": {"z": sulq.Int(0, 4), "code": sulq.Int(0, 2)},
    "shops": {"code_s": sulq.Int(0, 2), "w": sulq.Int(-2, 5)},
    "towns": {"code_t": sulq.Int(0, 2), "q": sulq.Int(0, 3)},
}
KINDS = {"x": pa.int64(), "y": pa.float64(), "f": pa.bool_(), "g": pa.string(), "note": pa.string(), "u": pa.int64(),
         "v": pa.int64(), "z": pa.int64(), "code": pa.int64(), "code_s": pa.int64(), "w": pa.int64(),
         "pid": pa.int64()}  # fmt: skip
PUBLIC = {"shops": [(0, 5), (1, -2), (1, 5), (2, 0)], "towns": [(0, 3), (1, 0), (2, 2)]}
HIGH = (3, 1.0, True, "a", "u", 0, 1)
LOW = (0, -1.0, False, "b", "v", 2, 3)
ODD = (2, 0.25, None, "c", "w", 1, 2)
BLANK = (None, None, None, None, None, None, None)
PEOPLE = {
    0: [ODD, HIGH, LOW],
    1: [HIGH, HIGH, HIGH],
    2: [HIGH, (3, 1.0, True, "c", "q", 1, 3), LOW],
    3: [LOW, LOW, ODD],
}
INSTEAD = {1: [LOW, LOW, LOW], 2: [(0, -1.0, False, "b", "new", 3, 0), BLANK, HIGH], 3: [HIGH]}
VISITS = {0: [(4, 0), (1, 1), (0, 2)], 1: [(4, 1)] * 3, 2: [(4, 0), (4, 0), (0, 2)], 3: [(2, 2), (0, 1), (4, 1)]}
KEY = bytes(range(32))
DELTA = EpsilonDelta(1000, 1e-3)
UNITS: dict[str, tuple[Unit, object]] = {
    "two rows": (Unit("pid", rows=2), DELTA),
    "three rows exchanged": (Unit("pid", rows=3, neighbors="replace_one"), DELTA),
    "one row blanked": (Unit("pid", rows=1, neighbors="zero_out"), DELTA),
    "a row exchanged": (Unit(neighbors="replace_one"), DELTA),
    "queries": (Unit("pid", rows=2), SubLinear(1, 1e-6, 50)),
    "coins": (Unit("pid", rows=2), SubLinear(1, 1e-6, 20, "binomial")),
}


def tables(unit: Unit, people: dict[int, list], visits: dict[int, list]) -> dict[str, pa.Table]:
    """The rows of some people, and their visits; of a row that is a person no column says so."""
    found = {
        name: pa.table({column: [row[i] for row in rows] for i, column in enumerate(COLUMNS[name])})
        for name, rows in PUBLIC.items()
    }
    for name, held in (("rows", people), ("visits", visits)):
        rows = [(person, *row) for person, mine in held.items() for row in mine[: unit.rows]]
        names = ("pid", *COLUMNS[name])
        cells = {column: pa.array([row[i] for row in rows], KINDS[column]) for i, column in enumerate(names)}
        found[name] = pa.table({column: cells[column] for column in names if column != "pid" or unit.column})
    return found


def neighbours(unit: Unit) -> list[dict[str, pa.Table]]:
    """The tables, and those without one person, or with another in that one's place."""
    found = [tables(unit, PEOPLE, VISITS)]
    for person in (1, 2, 3):
        if unit.neighbors != "replace_one":
            people, visits = ({p: rows for p, rows in held.items() if p != person} for held in (PEOPLE, VISITS))
        elif unit.column is None:  # one row, in one of the tables
            people = PEOPLE | {person: INSTEAD[person][:1]} if person != 3 else PEOPLE
            visits = VISITS | {3: [(4, 0)]} if person == 3 else VISITS
        else:
            people, visits = PEOPLE | {person: INSTEAD[person]}, VISITS | {person: [(0, 1), (0, 2), (0, 2)][:person]}
        found.append(tables(unit, people, visits))
    return found


# Questions


def questions(unit: Unit, budget: object) -> list[tuple[object, object]]:
    """What is asked, each with a spend."""
    rows, visits = Table("rows"), Table("visits")
    grouped = Sums((lit(1), col("x")), by=(col("g"),), over=rows)
    some = Sums((col("x") * 2 - 1,), where=col("f"), over=rows)
    clamped = Sums(((col("x") * col("y")).clip(-1, 2),), over=rows)
    if isinstance(budget, SubLinear):
        counted = [Sums((lit(1),), by=(col("g"),), over=rows), Sums((lit(1),), where=col("f"), over=rows)]
        asked = [grouped, some, Together((grouped, some))] if budget.calibration == "posterior" else []
        return [(one, None) for one in (*counted, *asked)]
    several = Sums((Vector((col("x") > 0, col("x") > 1, col("f")), 1),), over=rows)
    binned = Sums((lit(1),), by=(Bins(col("x"), (0, 1, 2, 3)), col("g")), over=rows)
    shopped = Join(visits, Table("shops"), (("code", "code_s"),), how="left")
    ball = within_ball(vector(["x", "y"], 4), 2)
    near = nearest(vector(["x", "y"], 4), [[0, 0], [3, 1]])
    looked = lookup([col("g"), Bins(col("x"), (0, 2, 3))], [[1, 0], [0, -1], [2, 2], [3, 0], [0, 0], [1, 1]])
    united = Union((rows, rows))
    listed: list[object] = [
        grouped, some, clamped, several, binned, Together((grouped, some)), Together((binned, several)),
        Sums((lit(1), col("w")), by=(col("code"),), over=shopped),
        Sums((lit(1), col("q")), over=Join(visits, Table("towns"), (("code", "code_t"),), how="left")),
        Sums((Bernstein(col("x"), 2, missing=True),), over=rows),
        Sums((col("x"), lit(1)), over=united),
        Sums((lit(1),), over=Distinct(visits)),
        Sums((ball,), over=rows),
        Sums((outer(ball),), over=rows),
        Sums((lit(1), vector(["x", "y"], 4)), by=(near,), over=rows),
        Sums((looked,), over=rows),
        Sums((lookup([col("g")], [[1, -1], [2, 0], [0, 3]]),), by=(col("f"),), over=rows),
    ]  # fmt: skip
    if unit.column is not None:
        joined = Join(rows, visits, (), person=True)
        each = PerPerson(rows, (), (("n", "count", None), ("s", "sum", col("x")), ("m", "max", col("x"))))
        keyed = PerPerson(rows, ("g",), (("n", "count", None),))
        listed += [
            Sums((lit(1), col("x"), col("z")), over=joined),
            Sums((col("n"), col("s"), col("m")), over=each),
            Sums((lit(1),), by=(col("g"),), over=keyed),
        ]
    listed += [Sums((outer(ball), lit(1)), over=rows), Sums((looked, lit(1)), over=rows)]
    # A tally of which statements of several sum a part, and one with a value that has none somewhere
    listed += [Together((Sums((looked, lit(1), col("x") / 2), over=rows), Sums((ball, lit(1)), over=rows), grouped))]
    listed += [Sums((col("x"), (lit(4) ** 0.5).clip(1, 2)), over=rows)]
    found = [(one, spend) for one in listed for spend in (Epsilon(1), Rho(1))]
    opened = (OpenSums((col("x"),), by=(col("note"),), over=rows), OpenSums((), by=(col("note"), col("g")), over=rows))
    found += [(one, spend(1, 1e-6)) for one in opened for spend in (EpsilonDelta, EpsilonKeys)]
    found += [(Above(binned, 2), Epsilon(1)), (Above(several, (1, 2, 3)), Rho(1))]
    found += [(Above(Sums((col("x"),), by=(col("g"),), over=rows), 4), Epsilon(1))]
    counts = Sums((lit(1),), by=(col("g"),), over=rows)
    both = Sums((lit(1), col("x")), by=(col("f"), col("g")), over=rows)
    scores: list[tuple[Sums, object]] = [
        (counts, Rank(1, 2)),
        (Sums((lit(1),), by=(col("f"), col("g")), over=rows), Rank(1, 4, 1)),
        (counts, Linear(((1, 0, 0), (0, 1, 0), (0, 1, -2)))),
        (counts, NegAbs(((1, -1, 0), (0, 2, 1)))),
        (both, Diagonal((1, 2, 3, -1, 1, 1))),
        (both, Diagonal((1, 2, 3, -1, 1, 1), folded=True)),
        (both, Contrast((((1, -1, 0), (0, 1, -1)), ((1, 1, -2), (0, 1, -1))))),
        (counts, NegMaxAbs(((1, 0, 0), (0, 1, 1)), ((1, 2), (2, 1), (0, 3)))),
        (counts, NegMaxAbs(((2, 0, 0), (0, 2, 1)), ((1, 2), (2, 1), (0, 3)), (1, 1, 1))),
        (counts, NegL1(((1, 0, 0), (0, 1, 1)), ((1, 2), (2, 1)))),
        (counts, Distance(((1, 2), (3,)), (1, 2), (0, -1))),
    ]
    for i, (over, score) in enumerate(scores):
        found += [
            (Choose(over, score), (Epsilon(1), Rho(1))[i % 2]),
            (Choose(over, score), (Rho(1), Epsilon(1))[i % 2]),
        ]
    graph = sulq.Graph("u", "v")
    statistics: list[tuple[object, object]] = [
        (sulq.MinCut(graph), None),
        (sulq.Triangles(graph), None),
        (sulq.Degrees(graph, 3), None),
        (sulq.Edges(graph), sulq.Cube()),
        (sulq.ToUnique(("x",)), sulq.Box(0, 12)),
        (sulq.SpanningTree(graph), None),
        (sulq.Occurring(("x", "g")), None),
        (sulq.Aggregated("median", ("x",), 2, 0, 3), None),
    ]
    found += [
        (Holistic(statistic, space=space, over=rows), spend)
        for statistic, space in statistics
        for spend in (Epsilon(1), Rho(1))
    ]
    return found


# Requests and where they run


def parts(node: object) -> list[tuple[Any, Any]]:
    """What a value of a request is made of, by field or place."""
    if type(node) is tuple:
        return list(enumerate(node))
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [(name, getattr(node, name)) for name in names(type(node))]
    return []


@functools.cache
def names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(kind))


def with_part(node: Any, name: Any, new: Any) -> Any:
    """A value with another part, whatever its class would say against it."""
    if type(node) is tuple:
        return (*node[:name], new, *node[name + 1 :])
    made = object.__new__(type(node))
    for other in names(type(node)):
        object.__setattr__(made, other, new if other == name else getattr(node, other))
    return made


@dataclass(eq=False)
class Turn:
    """Which of the neighbouring tables is asked, and how often any was."""

    now: int = 0
    reads: int = 0


# What is remembered goes by such a number: an id is given again, to something else, once its object is gone.
_numbers = itertools.count()


class Gate:
    """A callable of a request: that of the tables whose turn it is; what was asked of them is remembered."""

    def __init__(self, turn: Turn, calls: Sequence[Callable[..., Any]]) -> None:
        self.turn, self.calls, self.number = turn, calls, next(_numbers)

    def __call__(self, *given: object) -> Any:
        self.turn.reads += 1
        call, key = self.calls[self.turn.now], (self.number, self.turn.now)
        if key not in ANSWERS and not hasattr(found := call(), "__enter__"):
            ANSWERS.put(key, found)  # exact sums or rows, that no text of a request tells
        return ANSWERS[key] if key in ANSWERS else _asking(found, key)

    def __repr__(self) -> str:
        return "Gate(...)"


class Answers(dict):
    """What was asked of the same tables already."""

    MOST = 50_000

    def put(self, key: object, answer: Any) -> None:
        if len(self) > self.MOST:
            self.clear()
        self[key] = answer


ANSWERS = Answers()


@contextmanager
def _asking(opening: Any, key: object) -> Iterator[Any]:
    with opening as asking:
        yield Folding(asking, key)


class Folding:
    """Where certified text runs; the same program is folded once."""

    def __init__(self, asking: Any, key: object) -> None:
        self.asking, self.key = asking, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self.asking, name)

    def fold(self, asked: Any) -> Any:
        key = (self.key, repr(asked))  # by its text: numbers of other types may be equal, and are not the same
        if key not in ANSWERS:
            ANSWERS.put(key, self.asking.fold(asked))
        return ANSWERS[key]


class Cursor:
    """A cursor of DuckDB's whose small results are remembered by their text."""

    def __init__(self, side: int, cursor: Any) -> None:
        self.side, self.cursor = side, cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cursor, name)

    def execute(self, sql: str, bound: dict[str, object] | None = None) -> Any:
        return Result(self, (self.side, sql, repr(bound)), lambda: self.cursor.execute(sql, bound))


class Result:
    """The result of a statement that runs when it is looked at."""

    def __init__(self, cursor: Cursor, key: object, run: Callable[[], Any]) -> None:
        self.cursor, self.key, self.run = cursor, key, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run(), name)

    def fetchall(self) -> list[Any]:
        if self.key not in ANSWERS:
            ANSWERS.put(self.key, (self.run().fetchall(), self.cursor.cursor.description))
        rows, self.cursor.description = ANSWERS[self.key]
        return list(rows)


def gated(turn: Turn, several: Sequence[Any]) -> Any:
    """One request of the same one on each table: its callables are gates."""
    first = several[0]
    if callable(first) and not isinstance(first, type):
        return Gate(turn, several)
    for name, _ in parts(first):
        sides = [one[name] if type(one) is tuple else getattr(one, name) for one in several]
        new = gated(turn, sides)
        if new is not sides[0]:
            first = with_part(first, name, new)
    return first


class Book:
    """The first entry of a ledger of made-up data."""

    synthetic = True


@dataclass(eq=False)
class World:
    """Neighbouring tables behind one kernel, and honest requests to it."""

    name: str
    unit: Unit
    budget: object
    turn: Turn = field(default_factory=Turn)
    calls: list[Call] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    seal: Seal = field(default_factory=lambda: Seal(b"mutated requests"))
    paid: int = 0
    whole: bool = True  # whether receipts are sealed, and the mechanisms draw: both take their time
    kernel: Kernel = None  # type: ignore[assignment]
    sides: range = range(4)  # the tables: the first, and its neighbours
    refused: list[str] = field(default_factory=list)  # questions whose plans the kernel did not certify
    hidden: Counter[str] = field(default_factory=Counter)  # how often groups were hidden, by the law of their people

    def open(self, stack: ExitStack) -> None:
        """Open the tables, and let the curator make requests of all questions."""
        several = neighbours(self.unit)[: len(self.sides)]
        db = stack.enter_context(
            sulq.connect(
                several[0],
                columns=COLUMNS,
                unit=self.unit,
                budget=self.budget,
                public=[*PUBLIC],
                keys={"towns": "code_t"},
                synthetic=True,
            )
        )
        given = db._engine.tables.tables
        rows = []
        for held in several:
            made = Dataset(tuple(Given(Origin.of(held[f.schema.table]), f) for f in given), self.unit, KEY)
            engine = DuckEngine(made, threads=1)
            stack.callback(engine.close)
            engine.ready()
            engine._cursor = functools.partial(_cursor, next(_numbers), engine._cursor)
            rows.append(Rows(engine, self._redeem, budget=self.budget))
        rows[0].replace_noise(Book(), self._draw, self._reveal)  # type: ignore[arg-type]
        for question, spend in questions(self.unit, self.budget):
            law = "gaussian" if isinstance(spend, EpsilonDelta) else None  # or else the better one is taken
            plan = db.foresee(question, spend=spend, law=law)
            try:
                seen = [request_of(each, plan) for each in rows]
            except QuestionError as error:
                self.refused.append(f"{error.code}: {error.message} {question}")
                continue
            self.kernel = seen[0][0]
            self.requests.append((gated(self.turn, [releases for _, releases, _ in seen]), seen[0][2]))

    def _draw(self, law: Any, exact: Private[Any]) -> Any:
        self.calls.append((law, exact.open()))
        return release(own(law), exact) if self.whole else exact.open()

    def _reveal(self, laws: Any, exact: Private[Any]) -> Any:
        self.calls.append((laws, exact.open()))
        self.hidden[laws[0].law.kind] += 1
        return reveal(laws, exact) if self.whole else exact.open()

    def pay(self, event: Event, digest: str = "digest") -> Receipt:
        """A receipt for this event, as a ledger gives it."""
        self.paid += 1
        return self.seal.stamp(self.paid, "entry", digest, event) if self.whole else Receipt(0, "", "", "")

    def _redeem(self, receipt: Receipt, digest: str, event: Event) -> bool:
        return not self.whole or self.seal.redeem(receipt, digest, event)

    def run(self, checked: Checked, side: int) -> list[Call] | str:
        """What went into the noise on one of the tables, or how it failed after the debit."""
        self.turn.now = side
        self.calls.clear()
        try:
            self.kernel.run(checked, self.pay(checked.event), "digest")
        except CuratorError as failed:
            return failed.code
        finally:
            self.turn.now = 0
        return list(self.calls)


def _cursor(side: int, real: Callable[[Any], Any], connection: Any) -> Cursor:
    return Cursor(side, real(connection))


def request_of(rows: Rows, plan: object) -> tuple[Kernel, tuple[Any, ...], Event]:
    """What the curator asks the kernel for a plan."""
    seen: list[tuple[Kernel, tuple[Any, ...], Event]] = []
    real = Kernel.check

    def check(self: Kernel, releases: Any, event: Event) -> Checked:
        seen.append((self, tuple(releases), event))
        return real(self, releases, event)

    Kernel.check = check  # type: ignore[method-assign]
    try:
        rows.check(plan)  # type: ignore[arg-type]
    finally:
        Kernel.check = real  # type: ignore[method-assign]
    (found,) = seen
    return found


# What is lost


def excess(world: World, event: Event, first: list[Call], second: list[Call]) -> str:
    """Where two neighbouring tables are told apart by more than an event allows; empty where they are not."""
    if [law for law, _ in first] != [law for law, _ in second]:
        return "other noise on other rows"
    pure: Fraction | None = Fraction(0)
    rho = delta = Fraction(0)
    numbers = 0
    apart: list[tuple[Any, list[list[int]]]] = []
    for (law, one), (_, other) in zip(first, second, strict=True):
        for each, gaps, alone in moved(law, one, other):
            apart.append((each, gaps))
            numbers += sum(map(len, gaps))
            epsilon, curved = cost(each, gaps)
            pure = None if pure is None or epsilon is None else pure + epsilon
            rho += curved
            delta += alone
    if event.queries:
        return queried(world, event, numbers, apart)
    if rho > event.rho:
        return f"rho {float(rho)}, paid {event.rho}"
    if event.epsilon is not None and (pure is None or pure > event.epsilon):
        return f"epsilon {pure}, paid {event.epsilon}"
    if delta > event.key_delta:
        return f"delta {float(delta)}, paid {event.key_delta}"
    if len(apart) == len(event.draws):
        for (law, gaps), draw in zip(apart, event.draws, strict=True):
            if not recorded(law, gaps, draw):
                return f"{law} moved by {gaps}, recorded {draw}"
    return ""


def moved(law: Any, one: Any, other: Any) -> Iterator[tuple[Any, list[list[int]], Fraction]]:
    """Of each draw how far its inputs moved, row by row; and the chance that a group is shown by one table alone."""
    if not isinstance(law, tuple):
        gaps = one.astype(object) - other.astype(object)
        yield law, gaps.reshape(len(gaps), -1).tolist(), Fraction(0)
        return
    sides = [
        dict(zip(zip(*each.keys, strict=True), np.column_stack([each.persons, each.sums]).tolist(), strict=True))
        for each in (one, other)
    ]
    both = [key for key in sides[0] if key in sides[1]]
    single = [numbers for a, b in (sides, sides[::-1]) for key, numbers in a.items() if key not in b]
    start = 0
    for each in law:
        stop = start + each.width
        gaps = [
            [a - b for a, b in zip(sides[0][key][start:stop], sides[1][key][start:stop], strict=True)] for key in both
        ]
        alone = Fraction(0)
        if isinstance(each.law, PassedLaw):
            alone = sum((chance(each.law.scale, each.law.threshold - people[0] + 1) for people in single), alone)
        if isinstance(
            each.law, (PassedGaussianLaw, PassedLaplaceLaw)
        ):  # whoever is moved by so many shows by as many outcomes at the end
            moves = [people[0] for people in single] + [abs(gap[0]) for gap in gaps]
            alone = sum((truncated(each.law, move) for move in moves), alone)
        yield each.law, gaps, alone
        start = stop


def span(gap: list[int]) -> int:
    """The largest rise plus the largest fall."""
    return max(0, *gap) + max(0, *(-move for move in gap))


def norms(gaps: list[list[int]]) -> tuple[int, int]:
    """How far all numbers moved: in L1, and squared in L2."""
    every = [move for gap in gaps for move in gap]
    return sum(map(abs, every)), sum(move * move for move in every)


def cost(law: Any, gaps: list[list[int]]) -> tuple[Fraction | None, Fraction]:
    """What one draw loses whose inputs moved so: epsilon, None where there is none, and rho."""
    l1, l2 = norms(gaps)
    spans = [span(gap) for gap in gaps]
    match law:
        case LaplaceLaw() | PassedLaplaceLaw():  # each number has noise of its own: their rhos add up
            return l1 / law.scale, l2 / (2 * law.scale**2)
        case GaussianLaw() | PassedLaw() | PassedGaussianLaw():
            return (None if l2 else Fraction(0)), l2 / (2 * law.scale**2)
        case AboveLaw():
            most = max((abs(move) for gap in gaps for move in gap), default=0)
            pure = l1 / law.scale
            if law.threshold_scale:
                pure = most / law.threshold_scale + sum(spans) / law.scale
        case FlipLaw():
            pure = sum(spans) / law.scale
        case ExponentialLaw():
            return (None if any(spans) else Fraction(0)), sum(each**2 for each in spans) / (8 * law.scale**2)
        case MetricLaw():
            pure = sum(spans) / (2 * law.scale)
        case BitLaw():
            return l1 / law.scale, l1 / (2 * law.scale**2)
        case BinomialLaw():
            return (None if l1 else Fraction(0)), Fraction(0)
    return pure, pure**2 / 2


def recorded(law: Any, gaps: list[list[int]], draw: Draw) -> bool:
    """Whether a draw of the debit records as much as its inputs moved: the ledger's loss is recomputed from it."""
    l1, l2 = norms(gaps)
    spans = [span(gap) for gap in gaps]
    match law:
        case LaplaceLaw() | BitLaw() | PassedLaplaceLaw():
            return l1 <= draw.sensitivity
        case GaussianLaw() | PassedLaw() | PassedGaussianLaw():
            return l2 <= draw.sensitivity
        case FlipLaw() | MetricLaw():
            return sum(spans) <= draw.sensitivity * (2 if isinstance(law, MetricLaw) else 1)
        case ExponentialLaw():
            return sum(each**2 for each in spans) <= draw.sensitivity
    return True


def queried(world: World, event: Event, numbers: int, apart: list[tuple[Any, list[list[int]]]]) -> str:
    """As `excess`, where answers are counted: as many numbers, each under the noise that hides its own move."""
    if not isinstance(world.budget, SubLinear):
        return "queries where none were bought"
    if numbers > event.queries:
        return f"{numbers} numbers for {event.queries} queries"
    for law, gaps in apart:
        most = max((abs(move) for gap in gaps for move in gap), default=0)
        if isinstance(law, BinomialLaw):
            if most and law.coins < noise_for(world.budget, sensitivity=most).scale:
                return f"{law} for a move of {most}"
        elif law.scale < most * noise_for(world.budget, sensitivity=1).scale:
            return f"{law} for a move of {most}"
    return ""


def truncated(law: PassedGaussianLaw | PassedLaplaceLaw, move: int) -> Fraction:
    """Hardly less than the chance of noise that is so near its end that a number moved so far cannot have it."""
    rate, most = 1 / law.scale, min(move, law.threshold + 1)
    if isinstance(law, PassedGaussianLaw):
        past = chance(law.scale, law.threshold + 1) * Fraction(102 if law.scale > 200 else 100.001) / 100
        return max(chance(law.scale, law.threshold + 1 - most) - past, Fraction(0))
    mass = -math.expm1(-rate * (law.threshold + 1)) - math.exp(-rate) * math.expm1(-rate * law.threshold)
    last = math.exp(-rate * (law.threshold + 1 - most)) * -math.expm1(-rate * most)
    return Fraction(last / mass) * Fraction(999_999, 1_000_000)


@functools.lru_cache(4096)
def chance(scale: Fraction, least: int) -> Fraction:
    """Hardly less than the chance that discrete Gaussian noise is so much or more."""
    width = float(scale)
    if width > 200:
        return Fraction(0.99 * math.erfc(max(least, 0) / width / math.sqrt(2)) / 2)
    far = int(40 * width) + 2
    terms = [math.exp(-(z * z) / (2 * width * width)) for z in range(max(least, -far), max(least, 0) + far)]
    mass = 1 + 2 * sum(math.exp(-(z * z) / (2 * width * width)) for z in range(1, far))
    return Fraction(math.fsum(terms) / mass) * Fraction(999_999, 1_000_000)
