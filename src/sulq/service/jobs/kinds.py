"""The kinds of job: several queries, each learner, each release and selection; parameters are those of a signature.

Loaded when somebody first asks for a job (`manager.kinds`): it needs all learners and releases.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import takewhile
from typing import Annotated, Final, Self, TypeVar

from pydantic import ConfigDict, Field, model_validator

from sulq.answers.auto_bounds import Bounds
from sulq.answers.law_choice import LawName
from sulq.answers.oracle import Progress
from sulq.api.named_asks import NamedAsks
from sulq.api.relations import rows_of
from sulq.display.text_table import cell
from sulq.errors import QuestionError
from sulq.language.domain import MAX_NAME_LENGTH
from sulq.learn import LEARNERS
from sulq.learn.base import Learner, form
from sulq.learn.render import drawn, text_tables
from sulq.release.base import Chart, Written
from sulq.release.synthetic.data import at_most
from sulq.service.jobs import publication
from sulq.service.jobs.kind import JobKind, JobStep, Name, Stepwise, body_of, chosen
from sulq.service.jobs.publication import Found, Published, Publishing
from sulq.service.web.limits import MAX_PLANNED_QUERIES
from sulq.service.web.requests import Body, Spend, loss_of
from sulq.service.web.sql_answers import sql_json

T = TypeVar("T")

MAX_COLUMNS: Final = 256  # columns a job learns from
MAX_RESULT_BYTES: Final = 32 * 2**20  # it is kept in memory and must fit a frame (ipc.MAX_FRAME_BYTES)
MAX_SYNTHETIC_ROWS: Final = 1_000_000  # of synthetic data, named or as many as there are
MAX_PARAMETERS: Final = {"rows": MAX_SYNTHETIC_ROWS, "max_model_size": 200}  # elsewhere it may be more
COUNTS: Final = "How much each query's error counts where a total is divided."
LATER: Final = ("schema", "facts")  # of a description: the files, which hold them too, go first


class QueriesBody(Body):
    """Several queries: at one total, divided so that the mean relative error is least, or each at its own spend.

    Where a total is divided counts of one table may be asked as one design.
    """

    model_config = ConfigDict(title="Queries")

    queries: Annotated[list[str], Field(min_length=1, max_length=256)]
    spend: Spend | None = None
    spends: list[Spend] | None = None
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    weights: Annotated[list[float], Field(max_length=MAX_PLANNED_QUERIES)] | None = Field(None, description=COUNTS)
    law: LawName | None = Field(None, description="The noise, where the price leaves it open.")
    together: bool | None = Field(None, description="All at one debit, or one by one; by default as the plan says.")
    interval: bool = Field(True, description="Buy intervals of chosen quantiles; without, they are nearer.")


def _queries(asks: NamedAsks, asked: QueriesBody) -> Iterator[JobStep]:
    if (asked.spend is None) == (asked.spends is None):
        raise QuestionError("spend-missing", "Name one total as spend, or one of spends for each query.")
    law = asked.law
    if asked.spends is not None:
        if asked.weights is not None or asked.together is not None:
            text = "Where each query has a spend of its own there is no total: leave out weights and together."
            raise QuestionError("bad-question", text)
        spends = [loss_of(tree) for tree in asked.spends]
    else:
        if len(asked.queries) > MAX_PLANNED_QUERIES:
            raise QuestionError("bad-question", f"A total is divided over {MAX_PLANNED_QUERIES} queries at most.")
        total = loss_of(asked.spend)
        if total is None:
            spends = []
        else:
            plan = asks.plan(
                asked.queries, spend=total, beta=asked.beta, law=law, weights=asked.weights, interval=asked.interval
            )
            spends, law = list(plan.spends), None  # each part buys the plan's law
            if plan.plan is not None if asked.together is None else asked.together:
                yield JobStep(0, len(spends), {"answers": []})
                yield JobStep(len(spends), len(spends), {"answers": list(map(sql_json, plan.ask(together=True)))})
                return
    if len(spends) != len(asked.queries):
        raise QuestionError("bad-question", "Give one spend for each query.")
    answers: list[dict[str, object]] = []
    yield JobStep(0, len(spends), {"answers": []})
    for text, spend in zip(asked.queries, spends, strict=True):
        answers.append(sql_json(asks.sql(text, spend=spend, law=law, interval=asked.interval)))
        yield JobStep(len(answers), len(spends), {"answers": list(answers)})


class RowsBody(Body):
    """Which rows a job is about: those of the first table, of the one that is named, or of a SELECT."""

    table: Name | None = Field(None, description="Of several tables, the one that is meant.")
    view: str | None = Field(None, description="In place of a table, a SELECT of rows: a join, a row for each person.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        """A table or a view."""
        if self.table is not None and self.view is not None:
            raise ValueError("name a table or a view, not both")
        return self


class LearnBody(RowsBody):
    """What every learner's job names: the columns to learn from, and what to pay."""

    x: Annotated[list[Name], Field(min_length=1, max_length=MAX_COLUMNS, description="The columns to learn from.")]
    spend: Spend | None = Field(None, description="What the whole fit may cost; none where sums are counted.")
    bounds: Bounds | None = Field(None, description="auto: first search, from the same spend, for where numbers lie.")

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


def learner_kind(learner: type[Learner]) -> JobKind:
    """The job of one learner."""
    fields = form(learner)
    parameters = body_of(fields, SupervisedLearnBody if fields.supervised else LearnBody)

    def run(asks: NamedAsks, asked: LearnBody) -> Iterator[JobStep]:
        model = learner(**chosen(fields, asked))
        label = getattr(asked, "y", None)

        def fit(progress: Progress) -> Learner:
            rows = rows_of(asks, asked.table, asked.view)
            y = None if label is None else rows[label]
            return model.fit(rows[asked.x], y, spend=loss_of(asked.spend), progress=progress, bounds=asked.bounds)

        work = Stepwise(fit)
        yield from work.steps()
        told = {
            "model": model.to_json(),
            "text": drawn(model),
            "tables": [table.to_json() for table in text_tables(model)],
        }
        yield JobStep(work.total, work.total, told)

    return JobKind(fields.name, fields.title, parameters, run, fields.to_json())


class ReleaseBody(RowsBody):
    """What every release's job names: what to pay, and how its files are written."""

    spend: Spend | None = Field(None, description="What the whole release may cost; none where sums are counted.")
    written: Written = Field("parquet", description="How the tables in the archive are written.")

    @model_validator(mode="after")
    def _held(self) -> Self:
        """What is made here is held in the memory of a process that serves everybody (T85)."""
        for name, most in MAX_PARAMETERS.items():
            if (getattr(self, name, None) or 0) > most:
                raise ValueError(f"{name} is at most {most} in a job")
        if getattr(self, "division", None) == "planned" and len(getattr(self, "questions", ())) > MAX_PLANNED_QUERIES:
            raise ValueError(f"a job plans at most {MAX_PLANNED_QUERIES} questions: name fewer, or an even division")
        return self


def release_kind(publishing: Publishing) -> JobKind:
    """The job of one release."""
    fields = publication.form(publishing)

    def run(asks: NamedAsks, asked: ReleaseBody) -> Iterator[JobStep]:
        named = chosen(fields, asked)

        def publish(tell: Progress) -> Found:
            with at_most(MAX_SYNTHETIC_ROWS):
                rows = rows_of(asks, asked.table, asked.view)
                return publishing(rows, **named, spend=loss_of(asked.spend), progress=tell)

        work = Stepwise(publish)
        yield from work.steps()
        yield JobStep(work.total, work.total, release_result(Published(work.found), asked.written))

    return JobKind(fields.name, fields.title, body_of(fields, ReleaseBody), run, fields.to_json())


def release_result(found: Published, written: Written) -> dict[str, object]:
    """What a job found: all that is said of it, the beginnings of its tables, its charts, and its files packed.

    All of it together is at most MAX_RESULT_BYTES; what does not fit is left out and named in `left_out`. The files
    go last, since they hold everything. `sulq release --out` writes it at the caller's own, whatever its size.
    """
    described = found.description()
    fits = _Fits(MAX_RESULT_BYTES)
    release = {name: fits.take(name, part) for name, part in described.items() if name not in LATER}
    archive = fits.take("archive", base64.b64encode(found.archive(written)).decode())
    charts = fits.take("charts", [_chart(chart) for chart in found.charts()])
    release |= {name: fits.take(name, described[name]) for name in LATER if name in described}
    tables = takewhile(lambda table: table is not None, (fits.take("tables", one.to_json()) for one in found.tables()))
    return {
        "release": release,
        "tables": list(tables),
        "charts": charts or [],
        "archive": archive,
        "left_out": fits.left_out,
    }


class _Fits:
    """How much of a result is still free, and what did not fit any more."""

    def __init__(self, free: int) -> None:
        self.left_out: list[str] = []
        self._free = free

    def take(self, name: str, tree: T) -> T | None:
        """The tree where it fits, as JSON between processes; else nothing, and its name is noted."""
        size = len(json.dumps(tree, separators=(",", ":"), allow_nan=False))
        if size > self._free:
            self.left_out.append(name)
            return None
        self._free -= size
        return tree


def _chart(chart: Chart) -> dict[str, object]:
    return {
        "title": chart.title,
        "names": list(chart.names),
        "values": [cell(float(value)) for value in chart.values],
        "error": [cell(float(value)) for value in chart.error],
        "said": chart.said,
    }


KINDS: Final[tuple[JobKind, ...]] = (
    JobKind("queries", "Several queries at one total", QueriesBody, _queries),
    *map(learner_kind, LEARNERS),
    *map(release_kind, publication.ALL),
)
