"""`sulq report`: tables and charts for readers, from a specification; or a report that was made, once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sulq.cli.open import asked
from sulq.cli.query import ConfigOf, DeltaOf, EpsilonOf, RhoOf, spend_of
from sulq.cli.show import console
from sulq.cli.signature import check_writable, progress
from sulq.errors import QuestionError
from sulq.release import load
from sulq.release.base import replaced
from sulq.release.report import PublishedReport
from sulq.release.report.spec import ReportSpec

if TYPE_CHECKING:
    from sulq.language.privacy import Loss

SpecOf = Annotated[
    Path, typer.Argument(metavar="SPEC.toml|FOLDER", help="What the report is to hold; or a report that was made.")
]
DatasetOf = Annotated[
    str | None,
    typer.Argument(help="What is asked, if the specification does not name it: a data file, a name, or a URL."),
]
OutOf = Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the report into this folder.")]
WrittenOf = Annotated[Literal["csv", "parquet"], typer.Option("--format", help="How its tables are written.")]


def report(
    spec: SpecOf,
    dataset: DatasetOf = None,
    *,
    out: OutOf,
    epsilon: EpsilonOf = None,
    delta: DeltaOf = None,
    rho: RhoOf = None,
    format: WrittenOf = "csv",  # noqa: A002 - the option is called so
    config: ConfigOf = None,
) -> None:
    """Make a report for readers: titled tables with intervals, charts, what it protects, and notes on the method.

    All tables are one debit. Of a folder that an earlier report was written into the page is made again from its
    answers, which costs nothing and needs no data.
    """
    spend = None if epsilon is rho is delta is None else spend_of(epsilon, rho, delta)
    check_writable(out, "report", folder=True)
    replaced(out)
    made = _again(spec, dataset, spend) if spec.is_dir() else _made(spec, dataset, spend, config)
    made.save(out, format)
    console.print(
        f"{made!r}\nIt is in {out}: open {out / 'index.html'} in a browser, or print it to PDF.", markup=False
    )


def _made(spec: Path, dataset: str | None, spend: Loss | None, config: Path | None) -> PublishedReport:
    read = ReportSpec.read(spec)
    name = dataset or read.dataset
    if not name:
        raise QuestionError(
            "bad-report",
            "The specification names no dataset.",
            'Write dataset = "..." in it, or: sulq report SPEC.toml DATASET --out DIR.',
        )
    with asked(name, config) as db, progress("report") as tell:
        return db.report(read, spend=spend, progress=tell)


def _again(folder: Path, dataset: str | None, spend: Loss | None) -> PublishedReport:
    if dataset is not None or spend is not None:
        raise QuestionError(
            "bad-report",
            f"{folder} holds a report that was made: nothing is asked, and nothing spent.",
            "Name the specification, a TOML file, to ask again; or leave out dataset and spend.",
        )
    found = load(folder)
    if not isinstance(found, PublishedReport):
        raise QuestionError("bad-report", f"{folder} holds a release of another kind, no report.")
    return found
