"""Queries of a plan that are asked as one design: what they ask apart, how noisy each would be, and their answers.

The design itself comes from above (`JointPlanner`): here it is only asked, and each query reads its own counts from it
as if they had been released by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from sulq.answers.answer import Answer, Answers
from sulq.answers.readings.estimators import Plain
from sulq.answers.released import Noise, Released
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss
from sulq.language.question import Sums, Together
from sulq.sql.explain import Explanation, Foretold
from sulq.sql.forecast import ErrorForecast
from sulq.sql.parse.syntax import Literal
from sulq.sql.released.program import GroupStatistics, KeyLabel, StatAt

TOO_MUCH_AT_ONCE = ("body-too-large", "too-large", "too-much-work")  # of what may be asked query by query


class JointDesign(Protocol):
    """One question for several counts; from its answers' numbers and noise each query's own."""

    @property
    def question(self) -> Together:
        """What is asked."""
        ...

    def read(self, read: Sequence[tuple[Floats, Sequence[Noise]]]) -> list[Released]:
        """Each query's counts."""
        ...

    def foreseen(self, noise: Sequence[Sequence[Noise]]) -> list[Noise]:
        """The noise of each query's counts."""
        ...


# Of counting questions by their places in a plan, and what the width of each one's counts weighs: ways to ask them,
# each of some designs with the places of the queries that these answer.
Designs = Sequence[tuple[tuple[int, ...], JointDesign]]
JointPlanner = Callable[[Mapping[int, Sums], Mapping[int, float], Facts], Iterable[Designs]]


def counts_of(forecast: ErrorForecast, spend: Loss) -> Sums | None:
    """What a query asks that shows noisy counts as they are; None of any other, whose cells are computed with.

    Counts of a design share noise: what is computed from several of them would need the law of all together.
    """
    program, question = forecast.program, forecast.prepared(spend).question
    source = program.source
    if not isinstance(source, GroupStatistics) or [stat.name for stat in source.stats] != ["rows"]:
        return None
    shown = [expr for _, expr in program.columns]
    if program.having is not None or not all(isinstance(expr, (KeyLabel, StatAt, Literal)) for expr in shown):
        return None
    if question is None or len(question.questions) != 1:
        return None
    (asked,) = question.questions
    return asked if isinstance(asked, Sums) else None


@dataclass(frozen=True, slots=True, eq=False)
class JointAsk:
    """Queries that are asked as one design: their places in a plan and their part of its total."""

    places: tuple[int, ...]
    design: JointDesign
    part: Fraction
    noise: tuple[Noise, ...]  # of each query's counts, at that part

    @classmethod
    def of(
        cls, places: tuple[int, ...], design: JointDesign, part: Fraction, forecast: ErrorForecast, spend: Loss
    ) -> JointAsk | None:
        """With the noise that a part of a total buys; None where it is too much to be asked at once."""
        try:
            plan = forecast.foresee(design.question, spend)
        except QuestionError as error:
            if error.code not in TOO_MUCH_AT_ONCE:
                raise
            return None
        return cls(places, design, part, tuple(design.foreseen([one.noise for one in plan.parts])))

    def widths(self, place: int, forecast: ErrorForecast, beta: float) -> tuple[float, ...]:
        """How far each column of a query may be off, as `ErrorForecast.widths`."""
        noise = self.noise[self.places.index(place)]
        width = float(noise.law.accuracy(beta) * noise.step)
        return tuple(width if isinstance(expr, StatAt) else 0.0 for _, expr in forecast.program.columns)

    def explained(self, explanation: Explanation, place: int, widths: Sequence[float]) -> Explanation:
        """The explanation of a query that is asked with others."""
        columns = tuple(Foretold(each.name, (max(widths),) * len(explanation.rows)) for each in explanation.columns)
        return replace(explanation, columns=columns, notes=(*explanation.notes, told(self.places, place)))

    def answers(self, answers: Sequence[Answer]) -> dict[int, Answers]:
        """Each query's own answer, of the answers to the design's questions; its groups by their numbers."""
        read = [(one.released.values(), one.released.noise) for one in answers]
        exact = all(one.released.exact for one in answers)
        found = {}
        for place, own in zip(self.places, self.design.read(read), strict=True):
            groups = () if own.cells == 1 else (("group", tuple(range(own.cells))),)
            one = replace(answers[0], released=replace(own, exact=exact), keys=groups, columns=("count",))
            found[place] = Answers((replace(one, reading=Plain()),))
        return found


def told(places: Sequence[int], place: int) -> str:
    """With which queries of a plan, counted from 1, one is asked as one design."""
    others = [str(one + 1) for one in places if one != place]
    return f"planned together with {'query' if len(others) == 1 else 'queries'} {', '.join(others)}: one release"
