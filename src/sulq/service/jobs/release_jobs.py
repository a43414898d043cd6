"""Releases and selections as kinds of job: the parameters of their signatures, and the spend."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import takewhile
from typing import Final, Self, TypeVar

from pydantic import Field, model_validator

from sulq.answers.answer import cell
from sulq.answers.oracle import Progress
from sulq.api.named_asks import NamedAsks
from sulq.release.payment import Chart
from sulq.release.saving import Written
from sulq.release.synthetic.finish import at_most
from sulq.service.jobs.kind import JobKind, JobStep, body_of, chosen
from sulq.service.jobs.publication import ALL, Found, Published, Publishing, form
from sulq.service.jobs.stepwise import Stepwise
from sulq.service.web.answer_json import loss_of
from sulq.service.web.limits import MAX_PLANNED_QUERIES
from sulq.service.web.openapi import Spend
from sulq.service.web.requests import Body

T = TypeVar("T")

MAX_RESULT_BYTES: Final = 32 * 2**20  # it is kept in memory and must fit a frame (ipc.MAX_FRAME_BYTES)
MAX_SYNTHETIC_ROWS: Final = 1_000_000  # of synthetic data, named or as many as there are
MAX_PARAMETERS: Final = {"rows": MAX_SYNTHETIC_ROWS, "max_model_size": 200}  # elsewhere it may be more
LATER: Final = ("schema", "facts")  # of a description: the files, which hold them too, go first


class ReleaseBody(Body):
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


def releases() -> tuple[JobKind, ...]:
    """A kind of job for each release and selection."""
    return tuple(kind_of(each) for each in ALL)


def kind_of(publishing: Publishing) -> JobKind:
    """The job of one release."""
    asks = form(publishing)

    def run(desk: NamedAsks, asked: ReleaseBody) -> Iterator[JobStep]:
        named = chosen(asks, asked)

        def publish(tell: Progress) -> Found:
            with at_most(MAX_SYNTHETIC_ROWS):
                return publishing(desk, **named, spend=loss_of(asked.spend), progress=tell)

        work = Stepwise(publish)
        yield from work.steps()
        yield JobStep(work.total, work.total, told(Published(work.found), asked.written))

    return JobKind(asks.name, asks.title, body_of(asks, ReleaseBody), run, asks.to_json())


def told(found: Published, written: Written) -> dict[str, object]:
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
    tables = takewhile(lambda sheet: sheet is not None, (fits.take("tables", one.to_json()) for one in found.sheets()))
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
