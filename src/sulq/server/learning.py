"""Learners as kinds of job: the columns, the spend and the parameters of their signatures.

A fit runs in the web process and asks the clerk like any other caller, question by
question; it holds no rows. It goes on from one question to the next only when the
job does, so that a job that was ended asks nothing more.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, create_model, model_validator

from sulq.desk import Desk
from sulq.errors import CuratorError
from sulq.learn import LEARNERS
from sulq.learn.base import Learner
from sulq.learn.form import LONGEST, form
from sulq.learn.form import Field as Asked
from sulq.learn.shown import drawn, sheets
from sulq.server.answers import loss_of
from sulq.server.caller import Body
from sulq.server.documented import Spend
from sulq.server.job_kind import Kind, Step
from sulq.terms.domain import LONGEST_NAME

MOST: Final = 256  # columns a job learns from
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Columns(Body):
    """What every learner's job names: the columns to learn from, and what to pay."""

    x: Annotated[list[Name], Field(min_length=1, max_length=MOST, description="The columns to learn from.")]
    spend: Spend | None = Field(None, description="What the whole fit may cost; none where sums are counted.")

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """The columns are different ones, and the label is none of them."""
        named = [*self.x, *([label] if (label := getattr(self, "y", None)) is not None else [])]
        if len(set(named)) != len(named):
            raise ValueError("a column is named once, in x or as y")
        return self


class Labelled(Columns):
    """And, of a supervised learner, the column to predict."""

    y: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, description="The column to predict.")]


def learners() -> tuple[Kind, ...]:
    """A kind of job for each learner."""
    return tuple(kind_of(learner) for learner in LEARNERS)


def kind_of(learner: type[Learner]) -> Kind:
    """The job of one learner."""
    asks = form(learner)
    base = Labelled if asks.supervised else Columns
    fields: dict[str, Any] = {field.name: _typed(field) for field in asks.fields}
    parameters: type[Body] = create_model(asks.name, __base__=base, __doc__=f"{asks.title}.", **fields)
    own = [field.name for field in asks.fields]

    def run(desk: Desk, asked: Columns) -> Iterator[Step]:
        chosen = {name: getattr(asked, name) for name in own if name in asked.model_fields_set}
        label = getattr(asked, "y", None)
        model = learner(**chosen)
        fit = Fit(model, desk, asked, label)
        yield from fit.steps()
        told = {"model": model.to_json(), "text": drawn(model), "tables": [sheet.to_json() for sheet in sheets(model)]}
        yield Step(fit.total, fit.total, told)

    return Kind(asks.name, asks.title, parameters, run, asks.to_json())


def _typed(field: Asked) -> Any:  # noqa: ANN401 - a type and its default, as pydantic takes them
    """A parameter's type and default; strict, as all bodies are."""
    kinds: dict[str, Any] = {
        "whole": int,
        "number": int | Number,  # a whole number stays one
        "flag": bool,
        "text": Annotated[str, Field(max_length=LONGEST)],
    }
    options: list[Any] = [kinds[field.kind]] if field.kind in kinds else []
    if field.choices:
        options.append(Literal[field.choices])
    if field.optional:
        options.append(None)
    kind = options[0]
    for option in options[1:]:
        kind = kind | option
    usual: Any = ... if field.required else field.default
    return kind, Field(usual, description=field.help or field.takes)


class Ended(BaseException):
    """The job was ended: no further question may be asked. Not an error, so that no learner can catch it as one."""


class Fit:
    """A fit in a thread of its own that takes each step only when the job comes for the next."""

    def __init__(self, model: Learner, desk: Desk, asked: Columns, label: str | None) -> None:
        self.total = 0
        self._steps: queue.SimpleQueue[Step | Exception | None] = queue.SimpleQueue()
        self._next = threading.Semaphore(0)
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=(model, desk, asked, label), daemon=True)

    def steps(self) -> Iterator[Step]:
        """The steps of the fit; whoever stops asking for them ends it before its next question."""
        self._thread.start()
        try:
            while (found := self._steps.get()) is not None:
                if isinstance(found, Exception):
                    raise found
                yield found
                self._next.release()
        finally:
            self._ended = True
            self._next.release()

    def _run(self, model: Learner, desk: Desk, asked: Columns, label: str | None) -> None:
        try:
            y = None if label is None else desk[label]
            model.fit(desk[asked.x], y, spend=loss_of(asked.spend), progress=self._tell)
            self._steps.put(None)
        except Ended:
            return
        except Exception as error:  # noqa: BLE001 - it is raised where the job runs
            self._steps.put(error)
        except BaseException:  # noqa: BLE001 - a job must end, whatever ends its fit
            self._steps.put(CuratorError("engine-failed", "The fit was broken off."))

    def _tell(self, done: int, planned: int) -> None:
        self.total = planned
        self._steps.put(Step(done, planned, {}))
        self._next.acquire()
        if self._ended:
            raise Ended
