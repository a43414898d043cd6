"""The collector's side: reports to estimates with error bars, as an Oracle like any other (S4.25, SR19)."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple, cast

import numpy as np

from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.oracle import ColumnChoice
from sulq.answers.plan import Part, Plan
from sulq.answers.readings.estimators import Estimated
from sulq.answers.released import SLIP, Noise, Released, ReportLaw
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.kinds import Floats, Integers
from sulq.language.law import Law
from sulq.language.privacy import Epsilon, Event, Loss, Queries, Rho, Unit
from sulq.language.question import Question, Sums, Together
from sulq.language.rowfn import Col, RowFn, named
from sulq.local.estimation import cell_tables, inversion, shaped
from sulq.local.methods import AUTO, price, response
from sulq.local.record import Record

FINE: Final = 10  # bits by which released units are finer than the values' own grid
COARSEST: Final = Fraction(1, 2**FINE)
# Where a `ReportLaw` stands for a `Law` below, readers ask it for accuracy and variance alone: nobody draws from it.
FREE: Final = Event(Fraction(0), Fraction(0))
NOTE: Final = "from reports already given: nothing more is spent"
NOTHING: Final = Epsilon.total(Fraction(0))
SATURATED: Final = 2**62  # units of an estimate
_UNIT: Final = Unit(neighbors="replace_one")


class _Held(NamedTuple):
    """What is kept of reports: their tally and their number."""

    tally: Integers
    reports: int


class Collector:
    """Estimates from the reports of one round: frequencies, means, and any sum over the records.

    It is an Oracle: learners that ask sums alone, such as those of the statistical-query model, run on
    it as on a database. What is asked of reports already collected costs nothing more, and a spend that is named
    is not charged; what reports cannot tell is refused (`not-estimable`).

    Privacy: the reports', whatever is done with them [S4.25]: the relation is replace_one, the number of
    respondents is public (SR19).
    Accuracy: estimates are unbiased; intervals hold for any people at all (`ReportLaw`).
    Source: docs/theory/local.md; DMNS06, section 4.1.

    Args:
        domain: As the respondents were given it.
        epsilon: Likewise: what one report lost at most.
        method: Likewise.
    """

    def __init__(self, domain: object, *, epsilon: float | Epsilon, method: str = AUTO) -> None:
        self._record = Record.of(domain)
        self._epsilon = price(epsilon)
        self._method, self._response = response(self._record, self._epsilon, method)
        self._inversion = inversion(self._response)
        self._held = self._tallied(np.empty((0, *self._response.shape), dtype=np.int64))
        self._turn = threading.Lock()

    @property
    def method(self) -> str:
        """The method in use."""
        return self._method

    @property
    def size(self) -> int:
        """How many reports were collected."""
        return self._held.reports

    def collect(self, reports: object) -> int:
        """Take reports in, one or many, each of another person; gives how many there are now.

        Raises:
            QuestionError: `bad-reports`: they are not of this domain and method; none was taken.
        """
        found = self._tallied(reports)
        with self._turn:
            self._held = _Held(self._held.tally + found.tally, self._held.reports + found.reports)
            return self._held.reports

    # -- named estimates

    def frequencies(self, reports: object = None) -> Answer:
        """The part of the people in each cell, with intervals; of these reports, or of all that were collected.

        Accuracy: unbiased, so that some may be negative; for a rare value the variance is
        (e + K - 2)/(n (e - 1)^2) for krr, 4e/(n (e - 1)^2) for oue, (e + 1)^2/(n (e - 1)^2) for hadamard,
        e = exp(epsilon) [S4.19].
        """
        held = self._some(reports)
        counts = self._inversion.counts(held.tally, held.reports)
        own = np.zeros((self._record.cells, 1))
        own[0] = 1.0
        variances, jump = self._inversion.spread(own)
        law = self._law(variances, jump, self._heaviest(variances[:, 0], counts, held.reports), held.reports, COARSEST)
        step = COARSEST / held.reports
        units = _whole(counts, COARSEST)[:, None]
        released = Released(units, (Noise(cast("Law", law), step, 1),))
        return self._answer(released, self._record.labels, ("frequency",), held.reports)

    def mean(self, value: object, reports: object = None) -> Answer:
        """The mean of a number, or the part of the people for whom a condition holds: a statistical query.

        Accuracy: unbiased, so that it may pass the bounds of the value.
        """
        held = self._some(reports)
        (part, found), = self._parts(Sums((named(value),)), held)  # fmt: skip
        noise = tuple(Noise(item.law, item.step / held.reports, item.width) for item in part.noise)
        return self._answer(Released(found.units, noise), (), ("mean",), held.reports)

    # -- the Oracle

    @property
    def facts(self) -> Facts:
        """Everything public: what each report lost when it was given is spent, and questions add nothing to it."""
        whole, reports = Epsilon(self._epsilon), self._held.reports
        spent, left = (whole, NOTHING) if reports else (NOTHING, whole)
        return Facts(self._record.schema, _UNIT, whole, spent, left, reports, whose="reports")

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """The estimate's accuracy; free, like the estimate."""
        parts = tuple(part for part, _ in self._parts(question, self._some(None)))
        return Plan(question, parts, FREE, _named(spend), _UNIT, "dp")

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Estimate sums from the reports collected so far; a spend may be named, and nothing is charged."""
        _named(spend)
        held = self._some(None)
        answers = tuple(
            self._answer(released, tuple(_keys(part)), _columns(part), held.reports)
            for part, released in self._parts(question, held)
        )
        return Answers(answers) if isinstance(question, Together) else answers[0]

    def __getitem__(self, names: str | Sequence[str]) -> ColumnChoice:
        """Handles on the reported columns, as learners take them: collector[["a", "b"]], collector["c"]."""
        several = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, (list, tuple)) else ()
        if not several or not all(isinstance(name, str) for name in several):
            raise QuestionError("bad-question", 'Columns are named: collector["a"], collector[["a", "b"]].')
        return ColumnChoice(several, self)

    def __repr__(self) -> str:
        about = f"{self._record.cells:,} values, {Epsilon(self._epsilon)}, method {self._method!r}"
        return f"Collector({about}; {self._held.reports:,} reports)"

    # -- inside

    def _tallied(self, reports: object) -> _Held:
        found = shaped(reports, self._response)
        return _Held(self._inversion.tally(found), len(found))

    def _some(self, reports: object) -> _Held:
        held = self._held if reports is None else self._tallied(reports)
        if not held.reports:
            raise QuestionError("bad-reports", "There are no reports to estimate from.", "Collect some first.")
        return held

    def _parts(self, question: Question, held: _Held) -> list[tuple[Part, Released]]:
        """For each single question its plan and its estimates."""
        counts = self._inversion.counts(held.tally, held.reports)
        found = []
        for single in question.questions if isinstance(question, Together) else (question,):
            about = cell_tables(single, self._record)
            refine = tuple(FINE if block.step > COARSEST else 0 for block in about.tally.blocks)
            steps = [block.step / 2**bits for block, bits in zip(about.tally.blocks, refine, strict=True)]
            # How many people there are is known: a constant is taken off each table, which shrinks its variance.
            means = [table.mean(axis=0) for table in about.tables]
            apart = [table - mean for table, mean in zip(about.tables, means, strict=True)]
            laws = tuple(self._worst(t, counts, held.reports, s) for t, s in zip(apart, steps, strict=True))
            sums = [held.reports * mean + counts @ table for table, mean in zip(apart, means, strict=True)]
            moved = tuple(Fraction(0) for _ in laws)  # by a question, nobody: the reports are what they are
            part = Part(about.tally, cast("tuple[Law, ...]", laws), refine, moved, "l1")
            found.append((part, Released(_units(sums, steps, about.tally.cells), part.noise)))
        return found

    def _heaviest(self, variances: Floats, counts: Floats, reports: int) -> Floats:
        """Counts by which cell 0's estimate varies as much as any cell's, whose variances are the same in other order.

        Where all cells but the own one have the same variance, that is the most, or the least, frequent cell's turn;
        else everybody is put where the variance is largest.
        """
        own, others = variances[0], variances[1:]
        if np.ptp(others) <= 1e-9 * others.max():
            worst = int(np.argmax(counts) if own >= others[0] else np.argmin(counts))
            return np.concatenate([counts[worst : worst + 1], np.delete(counts, worst)])
        return np.where(np.arange(counts.size) == np.argmax(variances), float(reports), 0.0)

    def _worst(self, table: Floats, counts: Floats, reports: int, step: Fraction) -> ReportLaw:
        """One law that holds for every column of a table."""
        laws = []
        chunk = max(1, 2**22 // table.shape[0])
        for start in range(0, table.shape[1], chunk):
            variances, jumps = self._inversion.spread(table[:, start : start + chunk])
            for j, jump in enumerate(jumps):
                laws.append(self._law(variances[:, j : j + 1], jump[None], counts, reports, step))
        most, likely = max(law.most for law in laws), max(law.likely for law in laws)
        return ReportLaw(reports, most, likely, min(law.least for law in laws), max(law.jump for law in laws))

    def _law(self, variances: Floats, jump: Floats, counts: Floats, reports: int, step: Fraction) -> ReportLaw:
        """What the deviation is at most and at least, for any people, and as their own reports show it.

        The variance of an estimate is itself a sum over the people of a function of their cells, so the reports
        estimate it, within a bound that the same inequalities give.
        """
        unit, column = float(step), variances[:, 0]
        most, least = float(column.max()), float(column.min())
        likely = most * reports
        if most > least:
            second, jumps = self._inversion.spread(variances)
            worst = math.sqrt(reports * float(second.max()))
            off = ReportLaw(reports, worst, worst, 0.0, float(jumps[0]))
            likely = min(likely, max(float(counts @ column), least * reports) + off.reach(off.most, SLIP))
        widest, seen, narrowest = (math.sqrt(v) / unit for v in (reports * most, likely, reports * least))
        return ReportLaw(reports, widest, seen, narrowest, float(jump[0]) / unit)

    def _answer(
        self, released: Released, keys: tuple[tuple[str, tuple[object, ...]], ...], columns: tuple[str, ...], size: int
    ) -> Answer:
        lost, receipt = Epsilon(self._epsilon), Receipt(0, "local", "", "")
        notes = (f"{NOTE}; {size:,} reports, each of which lost {lost}",)
        return Answer(
            released, Estimated(), keys, columns, NOTHING, None, _UNIT, "dp", FREE, receipt, False, notes, total=lost
        )


def _named(spend: Loss | None) -> Loss:
    """A spend as it was named: it is not charged, but it must be one."""
    if spend is not None and not isinstance(spend, (Epsilon, Rho, Queries)):
        raise QuestionError("spend-kind", "Reports are of pure epsilon; nothing is charged.")
    return NOTHING if spend is None else spend


def _units(sums: list[Floats], steps: list[Fraction], cells: int) -> Integers:
    """Estimated sums in whole units, a row for each cell of the answer."""
    blocks = [_whole(values, step).reshape(cells, -1) for values, step in zip(sums, steps, strict=True)]
    return np.concatenate(blocks, axis=1)


def _whole(values: Floats, step: Fraction) -> Integers:
    """Estimates in whole units; those of many bits at a small epsilon grow past all bounds, and tell nothing."""
    units = np.rint(values / float(step))
    if not (np.abs(units) < SATURATED).all():
        raise QuestionError(
            "too-few-rows",
            "So few reports of so many bits tell nothing about this: the estimates leave 64 bits.",
            "Collect more reports, of fewer fields, or of a larger epsilon; or use hadamard.",
        )
    return units.astype(np.int64)


def _keys(part: Part) -> list[tuple[str, tuple[object, ...]]]:
    found: dict[str, tuple[object, ...]] = {}
    for i, key in enumerate(part.by):
        name = _title(key.fn)
        found[name if name not in found else f"{name}_{i}"] = key.labels
    return list(found.items())


def _columns(part: Part) -> tuple[str, ...]:
    names = []
    for block in part.tally.blocks:
        base = _title(block.fn)
        names += [base] if block.width == 1 else [f"{base}_{i}" for i in range(block.width)]
    return tuple(name if names.count(name) == 1 else f"{name}_{i}" for i, name in enumerate(names))


def _title(fn: RowFn) -> str:
    """A column's own name where a row function reads just one, else its kind."""
    if isinstance(fn, Col):
        return fn.name
    parts = fn.parts()
    return _title(parts[0]) if len(parts) == 1 else type(fn).__name__.lower()
