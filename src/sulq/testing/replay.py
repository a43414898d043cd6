"""Record and replay: the same program on two neighbouring data sets, the mechanisms' outputs frozen.

Protocol RP. A program runs on D; every call of a mechanism is recorded with its
exact input. It runs again on a neighbour D', where each call gets the output
recorded before. Whatever depends on rows other than through noise then shows as
a difference: in the calls, their laws or shapes, the answers' bytes, the errors,
the log, the warnings or the ledger. And the inputs may differ by no more than
was paid for, exactly, in integers.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers
from sulq.answers.oracle import Oracle
from sulq.curator.certificates import certifying
from sulq.curator.curator import Curator
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.reuse import ReusingOracle
from sulq.curator.run import Release, Reveal, Rows, reveal_groups
from sulq.errors import SulqError
from sulq.kernel.laws import (
    AboveLaw,
    BinomialLaw,
    BitLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    MetricLaw,
    Passed,
    PassedGaussianLaw,
    PassedLaplaceLaw,
    PassedLaw,
)
from sulq.kernel.mechanisms import Columns, Shown
from sulq.kernel.private import Private
from sulq.kernel.request import Place, Proposed
from sulq.kernel.run import Checked
from sulq.language.domain import Schema, Text
from sulq.language.facts import TableFacts
from sulq.language.kinds import Integers
from sulq.language.privacy import Budget, Draw, Event, Unit
from sulq.language.tally import Engine, Groups, Tally, sums_of

CHOICES: Final = (FlipLaw, ExponentialLaw)
D = TypeVar("D")
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReleaseCall:
    """One call of a mechanism: for which debit, its law, what went in, what came out."""

    debit: int
    law: Law
    given: Integers
    noisy: Integers


@dataclass(frozen=True, slots=True)
class GroupsCall:
    """One release of groups found in the data: for which debit, its laws, what went in, what came out."""

    debit: int
    noise: tuple[Columns, ...]
    given: Groups
    shown: Shown


@dataclass(frozen=True, slots=True)
class Entry:
    """One debit as the ledger tells it, but for the time of day."""

    question: str
    event: Event
    answer: str | None


@dataclass(slots=True)
class Run:
    """Everything a program caused on one data set."""

    calls: list[ReleaseCall | GroupsCall] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)  # bytes of each answer, or the error's
    entries: list[Entry] = field(default_factory=list)  # what the ledger was charged, and keeps
    log: list[str] = field(default_factory=list)  # log lines and warnings
    reads: list[bool] = field(default_factory=list)  # of each look at the rows: whether a debit came before it
    strays: list[str] = field(default_factory=list)  # errors that are none of sulq's own
    checked: dict[int, Checked] = field(default_factory=dict)  # of each debit, what the kernel certified

    @property
    def events(self) -> list[Event]:
        """What each ask cost."""
        return [entry.event for entry in self.entries]


class _Watched:
    """An engine that notes, whenever rows are read, whether that was paid for."""

    def __init__(self, engine: Engine, paid: Callable[[], bool], reads: list[bool]) -> None:
        self._engine = engine
        self._paid = paid
        self._reads = reads

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the engine has
        found = getattr(self._engine, name)
        return self._noted(found) if name in ("sums", "groups", "listed", "heavy") else found

    def _noted(self, read: Callable[P, T]) -> Callable[P, T]:
        def noted(*given: P.args, **more: P.kwargs) -> T:
            self._reads.append(self._paid())
            return read(*given, **more)

        return noted

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        self._reads.extend(self._paid() for _ in tallies)
        return sums_of(self._engine, tallies)

    def close(self) -> None:
        """Leave the engine open: it is the caller's."""


class _WatchedCertifying(_Watched):
    """The same of an engine whose statements the kernel certifies: they run where it says, and that is noted."""

    _engine: Any

    def sources(self, tallies: Sequence[Tally]) -> list[Proposed | None]:
        places: dict[int, Place] = {}  # what is run once stays one place
        found = list[Proposed | None](self._engine.sources(tallies))
        for source in found:
            if source is not None and id(source.place) not in places:
                places[id(source.place)] = self._noted(source.place)
        return [None if each is None else replace(each, place=places[id(each.place)]) for each in found]

    def found(self, tally: Tally) -> Proposed | None:
        source = self._engine.found(tally)
        return None if source is None else replace(source, place=self._noted(source.place))


def record(
    engine: Engine,
    programs: Sequence[Callable[[D], object]],
    *,
    asks: Callable[[Oracle], D],
    schema: Schema,
    unit: Unit,
    budget: Budget,
    release: Release,
    mechanisms: Sequence[str],
    reveal: Reveal = reveal_groups,
    size: int | None = None,
    earlier: Run | None = None,
    rows: Callable[[Engine, Ledger], Rows] = lambda engine, ledger: Rows(engine, ledger.redeem, budget=ledger.budget),
    noise: Callable[[Release], Release] = lambda release: release,
    curator: type[Curator] = Curator,
    tables: tuple[TableFacts, ...] = (),
) -> Run:
    """Run programs on one data set, with fresh noise or with an earlier run's outputs.

    Args:
        engine: Holds the rows; the caller closes it.
        programs: What the analyst does, one ask or several each.
        asks: Puts what the programs use before an Oracle.
        schema: The table's declarations, the same for both runs, as are the next three.
        unit: Whom an answer hides.
        budget: What may be lost; each run has a ledger of its own.
        release: The mechanisms.
        mechanisms: Their names.
        reveal: The mechanism for groups found in the data.
        size: The declared size.
        earlier: The run whose noisy outputs are given again.
        rows: Makes the part that sees rows; a control brings a bad one.
        noise: Puts a control's bad mechanism before those whose calls are recorded.
        curator: Likewise for the curator.
        tables: What else is declared of the tables, the first of them `schema`'s.
    """
    run = Run()

    def before_this() -> ReleaseCall | GroupsCall | None:
        place = len(run.calls)
        return earlier.calls[place] if earlier is not None and place < len(earlier.calls) else None

    def certified() -> None:
        checked = getattr(seeing, "checked", None)  # a control's own part that sees rows has none
        if checked is not None:
            run.checked[ledger.totals.events - 1] = checked

    # A call the first run did not make has no recorded output; nothing at all keeps the program going to be compared.

    def listen(law: Law, exact: Private[Integers]) -> Integers:
        given, old = exact.open().copy(), before_this()
        certified()
        if earlier is None:
            noisy = release(law, exact)
        elif isinstance(old, ReleaseCall) and old.given.shape == given.shape:
            noisy = old.noisy
        else:
            noisy = np.zeros_like(given[:, :1] if isinstance(law, (*CHOICES, AboveLaw)) else given)
        run.calls.append(ReleaseCall(ledger.totals.events - 1, law, given, noisy))
        return noisy

    def listen_groups(noise: tuple[Columns, ...], exact: Private[Groups]) -> Shown:
        given, old = exact.open(), before_this()
        certified()
        if earlier is None:
            shown = reveal(noise, exact)
        elif isinstance(old, GroupsCall) and old.noise == noise:
            shown = old.shown
        else:
            shown = Shown(
                np.zeros((0, sum(item.width for item in noise)), dtype=np.int64), tuple([] for _ in given.keys)
            )
        run.calls.append(GroupsCall(ledger.totals.events - 1, noise, given, shown))
        return shown

    open_keys = any(isinstance(column, Text) for _, column in schema.columns)
    before = 0

    def paid() -> bool:
        return ledger.totals.events > before

    with (
        _listening(run.log),
        Ledger.open(
            None, mechanisms=mechanisms, unit=unit, budget=budget, synthetic=True, open_keys=open_keys
        ) as ledger,
    ):
        watched = (_WatchedCertifying if certifying(engine) else _Watched)(engine, paid, run.reads)
        seeing = rows(watched, ledger).replace_noise(ledger, noise(listen), listen_groups)
        asked = asks(ReusingOracle(curator(seeing, ledger, schema, size=size, versions=(), tables=tables)))
        for program in programs:
            before = ledger.totals.events
            run.outcomes.append(_outcome(program, asked, run.strays))
        run.entries = [Entry(line.question, line.event, line.answer) for line in ledger.transcript()]
    return run


@contextmanager
def _listening(lines: list[str]) -> Iterator[None]:
    """Every log line and warning of sulq, whatever its level, as it would be written."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.levelname} {self.format(record)}")

    logger = logging.getLogger("sulq")
    listener, level = Listener(), logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield
        lines += [f"{warning.category.__name__} {warning.message}" for warning in heard]
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)


def _outcome(program: Callable[[D], object], asks: D, strays: list[str]) -> str:
    """All an analyst sees of one ask, but for the receipt's random keys."""
    try:
        found = program(asks)
    except SulqError as error:
        return f"{type(error).__name__} {error}"
    except Exception as error:  # noqa: BLE001 - an error of another kind is what the harness is to show
        strays.append(f"{type(error).__name__} {error}")
        return strays[-1]
    if not isinstance(found, (Answer, Answers)):  # made of answers, as a table of estimates: all of it is printed
        return repr(found)
    answers = found.answers if isinstance(found, Answers) else (found,)
    shown = [(a.released, a.reading, a.keys, a.columns, a.spent, a.remaining, a.guarantee, a.notes) for a in answers]
    return wire.encode(tuple(shown)) + repr(found)


def differences(first: Run, second: Run) -> list[str]:
    """What tells two runs on neighbouring data apart, other than through noise; empty if nothing does.

    Also what no single run may do: read rows before a debit, or let a foreign error out.
    """
    found = []
    if len(first.calls) != len(second.calls):
        found.append(f"{len(first.calls)} calls of mechanisms against {len(second.calls)}")
    for i, (a, b) in enumerate(zip(first.calls, second.calls, strict=False)):
        if _face(a) != _face(b):
            found.append(f"call {i}: another debit, law or shape")
    outcomes = enumerate(zip(first.outcomes, second.outcomes, strict=False))
    found += [f"outcome {i}: {x} against {y}" for i, (x, y) in outcomes if x != y]
    if first.entries != second.entries:
        found.append("the ledgers differ")
    if first.log != second.log:
        found.append("the log lines differ")
    if first.reads != second.reads:
        found.append("rows were read more often for one than for the other")
    for run in (first, second):
        found += [f"stray error: {stray}" for stray in run.strays]
        if not all(run.reads):
            found.append("rows were read before the debit")
    return found or overruns(first, second)


def overruns(first: Run, second: Run) -> list[str]:
    """Asks whose exact inputs differ by more than was declared or paid for."""
    found = []
    pairs = list(zip(first.calls, second.calls, strict=True))
    for i, event in enumerate(first.events):
        loss = Fraction(0)
        inputs = [item for pair in pairs if pair[0].debit == i for item in _inputs(*pair)]
        drawn = list(_drawn(event.draws, inputs))
        if sum(a.size for _, _, a, _ in drawn) != sum(a.size for _, a, _ in inputs):
            found.append(f"ask {i}: more was drawn than was paid for")
        for draw, law, a, b in drawn:
            moved = _moved(law, a, b, draw.norm, apart=event.queries > 0)
            declared = draw.sensitivity
            if draw.level is not None and isinstance(law, AboveLaw):
                declared += draw.most * draw.scale / draw.level
                found += [f"ask {i}: another threshold than was paid for"] * (law.threshold_scale != draw.level)
            if moved > declared:
                found.append(f"ask {i}: moved {moved}, declared {declared} ({draw.norm})")
            each = cost(law, moved)
            if event.epsilon is None and isinstance(law, AboveLaw):
                each = each**2 / 2  # a sparse vector is priced in epsilon under every spend: rho = epsilon^2/2
            if event.epsilon is None and isinstance(law, BitLaw):
                each /= 2 * law.scale  # bits that one person moves are flipped independently
            loss += each
            found += [f"ask {i}: {fault}" for fault in _alone(draw, law, a, b)]
        paid = event.rho if event.epsilon is None else event.epsilon
        if not event.queries and loss > paid:
            found.append(f"ask {i}: a loss of {float(loss):.6g}, paid {float(paid):.6g}")
    return found


def _face(call: ReleaseCall | GroupsCall) -> tuple[object, ...]:
    """What must be the same of a call on neighbouring data; which groups there are need not be."""
    if isinstance(call, GroupsCall):
        return call.debit, call.noise
    return call.debit, call.law, call.given.shape


def _inputs(
    first: ReleaseCall | GroupsCall, second: ReleaseCall | GroupsCall
) -> Iterator[tuple[Law, Integers, Integers]]:
    """What went into each draw of a call; of groups, over the union of both sides' keys, absent ones as zeros."""
    if isinstance(first, ReleaseCall) and isinstance(second, ReleaseCall):
        yield first.law, first.given, second.given
    elif isinstance(first, GroupsCall) and isinstance(second, GroupsCall):
        sides = [list(zip(*call.given.keys, strict=True)) for call in (first, second)]
        keys = list(dict.fromkeys((*sides[0], *sides[1])))
        tables = []
        for own, groups in zip(sides, (first.given, second.given), strict=True):
            table = np.zeros((len(keys), 1 + groups.sums.shape[1]), dtype=np.int64)
            places = [keys.index(key) for key in own]
            table[places] = np.column_stack([groups.persons, groups.sums])
            tables.append(table)
        start = 0
        for item in first.noise:
            columns = slice(start, start + item.width)
            yield item.law, tables[0][:, columns], tables[1][:, columns]
            start += item.width


def _drawn(
    draws: Sequence[Draw], inputs: Sequence[tuple[Law, Integers, Integers]]
) -> Iterator[tuple[Draw, Law, Integers, Integers]]:
    """What went into each draw that was paid for: neighbouring sums of one law are drawn in one call.

    Where a mechanism or the engine failed, on both data alike, there are fewer inputs than draws.
    """
    left = iter(draws)
    for law, a, b in inputs:
        start = 0
        while start < a.shape[1] and (draw := next(left, None)) is not None:
            apart = isinstance(law, (LaplaceLaw, GaussianLaw, BinomialLaw)) and draw.cells > 0 and len(a) > 0
            stop = start + draw.cells // len(a) if apart else a.shape[1]
            yield draw, law, a[:, start:stop], b[:, start:stop]
            start = stop


def _alone(draw: Draw, law: Law, a: Integers, b: Integers) -> Iterator[str]:
    """Groups that only one side has: no more than declared, each of one person, and covered by their delta."""
    if not isinstance(law, Passed):
        return
    one_sided = np.concatenate([a[b == 0], b[a == 0]])
    one_sided = one_sided[one_sided > 0]
    if len(one_sided) > draw.alone:
        yield f"{len(one_sided)} groups on one side only, declared {draw.alone}"
    if one_sided.max(initial=0) > 1:
        yield f"a group of {one_sided.max()} people on one side only"
    if law.threshold != draw.threshold:
        yield "another threshold than was paid for"


def _moved(law: Law, a: Integers, b: Integers, norm: str, *, apart: bool) -> Fraction:
    """How far the input of one draw moved: L1, or L2 squared; with `apart` the farthest single sum (SubLinear).

    Of scores, each choice moves by its span: the largest rise plus the largest fall. Sums
    before a noisy threshold by their span and, as the scales weigh it, the largest move. Points of
    a space by the largest move alone where the same distances occur, so that their weights have the same total.
    """
    gap = a.astype(object) - b.astype(object)
    if isinstance(law, MetricLaw) and (np.sort(a) != np.sort(b)).any():
        gap = np.maximum(gap.max(axis=1), 0) - np.minimum(gap.min(axis=1), 0)
    elif isinstance(law, MetricLaw):
        gap = np.abs(gap).max(axis=1)
    if isinstance(law, AboveLaw) and law.threshold_scale:
        rise, fall = int(max(gap.max(), 0)), int(max(-gap.min(), 0))
        return max(rise, fall) * law.scale / law.threshold_scale + rise + fall
    if isinstance(law, CHOICES) and gap.size:
        gap = np.maximum(gap.max(axis=1), 0) - np.minimum(gap.min(axis=1), 0)
    gap = np.abs(gap).ravel()
    if not gap.size:
        return Fraction(0)
    if apart:
        gap = gap[[gap.argmax()]]
    return Fraction(int((gap * gap).sum() if norm == "l2" else gap.sum()))


def cost(law: Law, moved: Fraction) -> Fraction:
    """The loss of one draw whose input moved that far: epsilon of an L1 move, rho of a squared L2 move."""
    if isinstance(law, (LaplaceLaw, PassedLaplaceLaw, FlipLaw, AboveLaw, MetricLaw, BitLaw)):
        return moved / law.scale
    if isinstance(law, ExponentialLaw):
        return moved / (8 * law.scale**2)
    if isinstance(law, (GaussianLaw, PassedLaw, PassedGaussianLaw)):
        return moved / (2 * law.scale**2)
    if isinstance(law, BinomialLaw):
        return Fraction(0)  # its cost is not a function of one move; the coin count was searched for the budget
    raise TypeError(law)
