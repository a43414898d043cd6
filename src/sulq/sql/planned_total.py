"""A total divided over several queries: each one's part, how accurate that makes it, and the one question for all."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

from sulq.answers.answer import Answers
from sulq.answers.reuse import nothing
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, EpsilonKeys, Loss, Rho
from sulq.language.question import Single, Sums, Together
from sulq.sql.answer import SqlAnswer
from sulq.sql.division import LEAST_PART, Curve, Off, amount, divided
from sulq.sql.explain import Explanation
from sulq.sql.forecast import UNDECLARED_SIZE_ROWS, ErrorForecast
from sulq.sql.joint import JointAsk, JointDesign, JointPlanner, counts_of, told
from sulq.sql.released.render import PreparedQuery

DESIGN_TRIES: Final = 4
MORE: Final = 1.1  # what a query weighs more where it would be too far off, beside how far
DROWNED: Final = 2.0  # as a part of an answer: the most that it is taken to be off


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One query of a workload: its part of the total and how accurate that makes it."""

    text: str
    spend: Loss
    error: float  # the mean over its columns of how far they may be off, as a part of a typical answer
    widths: tuple[tuple[str, float], ...]  # how far each column may be off
    explanation: Explanation
    together: tuple[int, ...] = ()  # the places of queries that are asked as one design, its own among them


@dataclass(frozen=True, slots=True, eq=False)
class QueryErrors:
    """How far off each query would be at a part of a total; `offs`: as a part of a typical answer."""

    forecasts: tuple[ErrorForecast, ...]
    whole: Epsilon | Rho | EpsilonDelta
    beta: float
    weights: tuple[float, ...]
    units: tuple[tuple[float, ...], ...]
    offs: list[Off]

    @classmethod
    def of(
        cls,
        forecasts: Sequence[ErrorForecast],
        total: Epsilon | Rho | EpsilonDelta,
        beta: float,
        known: Sequence[SqlAnswer | None],
        weights: Sequence[float],
    ) -> Self:
        """From declarations, or from an answer that is known and its price."""
        facts = forecasts[0].facts
        rows = facts.size or UNDECLARED_SIZE_ROWS
        units = tuple(forecast.scales(forecast.plan(total), rows=rows) for forecast in forecasts)
        whole = facts.counted(total) if isinstance(total, EpsilonDelta) else total
        found = cls(tuple(forecasts), whole, beta, tuple(weights), units, [])
        found.offs.extend(found._off(place) for place in range(len(forecasts)))
        for i, one in enumerate(known):
            if one is not None and (paid := _price(one.spent, facts, pure=isinstance(total, Epsilon))):
                part = paid / amount(whole)
                size = _seen(one, beta) * found._nearer(i, part) * part**found.usual
                found.offs[i] = Curve(size, found.usual).at
        return found

    @property
    def usual(self) -> float:
        """The power of a spend by which noise falls."""
        return 1.0 if isinstance(self.whole, Epsilon) else 0.5

    def widths(self, place: int, part: Fraction, *, values: bool = False) -> tuple[float, ...]:
        """How far each column of a query may be off at a part of the total; `values`: chosen values, not intervals."""
        forecast = self.forecasts[place]
        rows, plan = forecast.facts.size or UNDECLARED_SIZE_ROWS, forecast.plan(self.whole.share(part))
        return forecast.widths(plan, rows=rows, beta=self.beta, whole=True, values=values)

    def relative(self, place: int, widths: Sequence[float]) -> float:
        """The mean over columns that are not exact of how far off they are, as parts of their units."""
        found = [width / unit for width, unit in zip(widths, self.units[place], strict=True) if width]
        return math.fsum(found) / len(found) if found else 0.0

    def _nearer(self, place: int, part: float) -> float:
        """How far off a query's values are, as a part of what its intervals tell; less than 1 of chosen quantiles."""
        told, own = (self.widths(place, Fraction(min(part, 1.0)), values=values) for values in (False, True))
        shares = [mine / width for mine, width in zip(own, told, strict=True) if 0 < width < math.inf]
        return math.fsum(shares) / len(shares) if shares else 1.0

    def _off(self, place: int) -> Off:
        @functools.cache
        def error(part: float) -> float:
            try:
                return self.relative(place, self.widths(place, Fraction(part), values=True))
            except QuestionError as refused:
                if refused.code != "too-little-noise":
                    raise
                return math.inf

        return error


@dataclass(frozen=True, slots=True, eq=False)
class JointErrors:
    """Which counts are asked as one design: those that this is foreseen to bring nearer.

    `worth`: of each counting query its relative error for each row that its counts may be off.
    """

    errors: QueryErrors
    parts: list[Fraction]  # of the queries asked apart
    worth: dict[int, float]

    def _mean(self, one: JointAsk) -> float:
        """The weighted mean of the relative errors of its queries."""
        weights = self.errors.weights
        whole = math.fsum(weights[i] for i in one.places)
        return math.fsum(weights[i] * error for i, error in self._each(one).items()) / whole

    def _each(self, one: JointAsk) -> dict[int, float]:
        errors = self.errors
        return {i: self.worth[i] * max(one.widths(i, errors.forecasts[i], errors.beta)) for i in one.places}

    def _gained(self, one: JointAsk) -> float:
        """How much nearer than apart in the mean."""
        offs, weights = self.errors.offs, self.errors.weights
        apart = math.fsum(weights[i] * offs[i](float(self.parts[i])) for i in one.places)
        return apart - self._mean(one) * math.fsum(weights[i] for i in one.places)

    def _beyond(self, one: JointAsk) -> dict[int, float]:
        """The queries that would be farther off than at their least part, and how many times as far."""
        offs, weights = self.errors.offs, self.errors.weights
        least = {i: (error, offs[i](LEAST_PART * weights[i])) for i, error in self._each(one).items()}
        return {i: error / most for i, (error, most) in least.items() if error > most}

    def chosen(self, planner: JointPlanner, asked: Mapping[int, Sums]) -> list[JointAsk]:
        """Of the ways to ask counts as one the best, as far as it brings them nearer and leaves none too far off.

        A query that would be too far off weighs more at the next try.
        """
        weighed = {i: self.errors.weights[i] * worth for i, worth in self.worth.items()}
        most = 0.0
        best: list[JointAsk] = []
        for _ in range(DESIGN_TRIES):
            beyond: dict[int, float] = {}
            for way in planner(asked, weighed, self.errors.forecasts[0].facts):
                tried = (self._made(places, design) for places, design in way)
                made = [one for one in tried if one is not None]
                beyond = {i: times for one in made for i, times in self._beyond(one).items()} | beyond
                found = [(one, self._gained(one)) for one in made if not self._beyond(one)]
                if (whole := math.fsum(gained for _, gained in found if gained > 0)) > most:
                    most, best = whole, [one for one, gained in found if gained > 0]
            if not beyond:
                break
            weighed |= {i: weighed[i] * (MORE * times) ** 4 for i, times in beyond.items()}
        return best

    def _made(self, places: tuple[int, ...], design: JointDesign) -> JointAsk | None:
        """A design at the parts that its queries have apart."""
        part = Fraction(sum(self.parts[i] for i in places))
        return JointAsk.of(places, design, part, self.errors.forecasts[0], self.errors.whole.share(part))

    def divided(self, found: Sequence[JointAsk]) -> tuple[list[Fraction], list[JointAsk]]:
        """The parts of all queries where these are asked as one: a design's among its queries as they were apart."""
        errors, taken = self.errors, {i for one in found for i in one.places}
        alone = [i for i in range(len(errors.offs)) if i not in taken]
        curves = [Curve(self._mean(one) * float(one.part) ** errors.usual, errors.usual) for one in found]
        offs = [*(errors.offs[i] for i in alone), *(curve.at for curve in curves)]
        weights = [errors.weights[i] for i in alone]
        weights += [math.fsum(errors.weights[i] for i in one.places) for one in found]
        parts = divided(offs, weights, errors.usual)
        made, each = [], dict(zip(alone, parts, strict=False))
        for one, part in zip(found, parts[len(alone) :], strict=True):
            again = JointAsk.of(one.places, one.design, part, errors.forecasts[0], errors.whole.share(part))
            made += [] if again is None else [again]
            each |= {i: part * self.parts[i] / sum(self.parts[j] for j in one.places) for i in one.places}
        return [each[i] for i in range(len(errors.offs))], made

    @classmethod
    def joined(
        cls, errors: QueryErrors, parts: list[Fraction], planner: JointPlanner
    ) -> tuple[list[Fraction], list[JointAsk]]:
        """The parts of the total, and the queries that are asked as one."""
        asked = {
            i: one for i, each in enumerate(errors.forecasts) if (one := counts_of(each, errors.whole)) is not None
        }
        # What is exact already, or known to be, has nothing to gain.
        offs = {i: (errors.offs[i](float(parts[i])), max(errors.widths(i, parts[i]))) for i in asked}
        worth = {i: off / width for i, (off, width) in offs.items() if 0 < off < math.inf and 0 < width < math.inf}
        own = cls(errors, parts, worth)
        found = own.chosen(planner, {i: asked[i] for i in worth})
        return own.divided(found) if found else (parts, [])


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """A total and the part of it that each query has, by which the mean relative error is least."""

    total: Epsilon | Rho | EpsilonDelta
    forecasts: tuple[ErrorForecast, ...]
    queries: tuple[Planned, ...]
    parts: tuple[Fraction, ...]
    joint: tuple[JointAsk, ...] = ()

    @classmethod
    def of(cls, errors: QueryErrors, total: Epsilon | Rho | EpsilonDelta, planner: JointPlanner | None = None) -> Self:
        """Divide a total; `planner`: what makes one design of counts, where noise is Gaussian."""
        joint: list[JointAsk] = []
        parts = divided(errors.offs, errors.weights, errors.usual)
        if planner is not None and not isinstance(total, Epsilon):
            parts, joint = JointErrors.joined(errors, parts, planner)
        made = []
        for i, (forecast, part) in enumerate(zip(errors.forecasts, parts, strict=True)):
            share, own = errors.whole.share(part), next((one for one in joint if i in one.places), None)
            widths = errors.widths(i, part) if own is None else own.widths(i, forecast, errors.beta)
            explanation = forecast.explained(share, errors.beta)
            if own is not None:
                explanation = own.explained(explanation, i, widths)
            shown = tuple((name, width) for name, width in zip(forecast.names, widths, strict=True) if width)
            together = () if own is None else own.places
            near = widths if own is not None or forecast.interval else errors.widths(i, part, values=True)
            error = errors.relative(i, near)
            made.append(Planned(forecast.compiled.text, share, error, shown, explanation, together))
        return cls(total, errors.forecasts, tuple(made), tuple(parts), tuple(joint))

    def question(self) -> Together | None:
        """All that the queries ask, each for its part of the total; None where nothing private is asked."""
        asked = [(one.question, part) for one, part in zip(self._prepared(), self.parts, strict=True)]
        taken = {i for one in self.joint for i in one.places}
        asked = [each for i, each in enumerate(asked) if i not in taken]
        questions: list[Single] = []
        weights: list[Fraction] = []
        for question, part in (*asked, *((one.design.question, one.part) for one in self.joint)):
            if question is not None:
                each = question.shares or (Fraction(1),) * len(question.questions)
                questions += question.questions
                weights += [part * share / sum(each) for share in each]
        return Together(tuple(questions), tuple(weights)) if questions else None

    def read(self, answers: Answers) -> list[SqlAnswer]:
        """Each query's answer, of the answers to all questions."""
        found, start = [], 0
        prepared, own = self._prepared(), self._joint_answers(answers)
        for i, (one, query) in enumerate(zip(prepared, self.queries, strict=True)):
            number = 0 if one.question is None or i in own else len(one.question.questions)
            mine, start = Answers(tuple(answers)[start : start + number]), start + number
            mine = own.get(i, mine)
            table = one.read([answer.released for answer in mine])
            first = answers[0]
            paid = nothing(query.spend) if first.reused or not len(mine) else query.spend
            together = (told(query.together, i),) if i in own else ()
            found.append(
                SqlAnswer(
                    table, mine if len(mine) else None, paid, first.remaining, first.unit,
                    first.guarantee, first.receipt, first.reused, (*table.notes, *together, *first.notes),
                )
            )  # fmt: skip
        return found

    def _joint_answers(self, answers: Answers) -> dict[int, Answers]:
        """The answers of the queries that are asked as one; their designs are asked last, in order."""
        found: dict[int, Answers] = {}
        end = len(answers)
        for one in reversed(self.joint):
            start = end - len(one.design.question.questions)
            found |= one.answers(tuple(answers)[start:end])
            end = start
        return found

    def _prepared(self) -> list[PreparedQuery]:
        """The queries as they are laid out for their parts; new ones, as each remembers what it read."""
        return [one.prepared(query.spend) for one, query in zip(self.forecasts, self.queries, strict=True)]


def _price(spent: Loss, facts: Facts, *, pure: bool) -> float:
    """What an answer cost, in epsilon or in rho; 0 where it was free, or has no such price."""
    match spent:
        case Epsilon() | EpsilonKeys() if pure:
            return float(spent.amount)
        case Rho() if not pure:
            return float(spent.amount)
        case EpsilonDelta() if not pure and spent.amount:
            return amount(facts.counted(spent))
    return 0.0


def _seen(known: SqlAnswer, beta: float) -> float:
    """How far off an answer is, as a part of itself: the mean over its cells; twice itself where noise drowns it.

    A few drowned cells are groups that nobody may be in, and do not count; where most are, the query is far off.
    """
    found = []
    for value, low, high in known.bars(beta):
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and high > low:
            size = abs(value) if isinstance(value, (int, float)) else 0.0
            found.append(min((high - low) / 2 / size, DROWNED) if size else DROWNED)
    seen = [error for error in found if error < 1]
    seen = seen if 2 * len(seen) >= len(found) else found
    return math.fsum(seen) / len(seen) if seen else 0.0
