"""Learners as kinds of job: the columns, the spend and the parameters of their signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from sulq.answers.oracle import Progress
from sulq.api.named_asks import NamedAsks
from sulq.language.domain import MAX_NAME_LENGTH
from sulq.learn import LEARNERS
from sulq.learn.base import Learner, form
from sulq.learn.render import drawn, sheets
from sulq.service.jobs.kind import JobKind, JobStep, Name, body_of, chosen
from sulq.service.jobs.stepwise import Stepwise
from sulq.service.web.answer_json import loss_of
from sulq.service.web.openapi import Spend
from sulq.service.web.requests import Body

MAX_COLUMNS: Final = 256  # columns a job learns from


class LearnBody(Body):
    """What every learner's job names: the columns to learn from, and what to pay."""

    x: Annotated[list[Name], Field(min_length=1, max_length=MAX_COLUMNS, description="The columns to learn from.")]
    spend: Spend | None = Field(None, description="What the whole fit may cost; none where sums are counted.")

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """The columns are different ones, and the label is none of them."""
        named = [*self.x, *([label] if (label := getattr(self, "y", None)) is not None else [])]
        if len(set(named)) != len(named):
            raise ValueError("a column is named once, in x or as y")
        return self


class SupervisedLearnBody(LearnBody):
    """And, of a supervised learner, the column to predict."""

    y: Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, description="The column to predict.")]


def learners() -> tuple[JobKind, ...]:
    """A kind of job for each learner."""
    return tuple(kind_of(learner) for learner in LEARNERS)


def kind_of(learner: type[Learner]) -> JobKind:
    """The job of one learner."""
    asks = form(learner)
    parameters = body_of(asks, SupervisedLearnBody if asks.supervised else LearnBody)

    def run(desk: NamedAsks, asked: LearnBody) -> Iterator[JobStep]:
        model = learner(**chosen(asks, asked))
        label = getattr(asked, "y", None)

        def fit(progress: Progress) -> Learner:
            y = None if label is None else desk[label]
            return model.fit(desk[asked.x], y, spend=loss_of(asked.spend), progress=progress)

        work = Stepwise(fit)
        yield from work.steps()
        told = {"model": model.to_json(), "text": drawn(model), "tables": [sheet.to_json() for sheet in sheets(model)]}
        yield JobStep(work.total, work.total, told)

    return JobKind(asks.name, asks.title, parameters, run, asks.to_json())
