"""`sulq release NAME DATASET`: a command for each release and selection, made from its signature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sulq.api.relations import rows_of
from sulq.cli import signature
from sulq.cli.open import asked
from sulq.cli.query import ConfigOf, EpsilonOf, RhoOf, TableOf, ViewOf, spend_of
from sulq.cli.show import console
from sulq.cli.signature import DeltaOf, check_writable, chosen, progress
from sulq.errors import QuestionError
from sulq.forms.signature import Form
from sulq.release.base import replaced
from sulq.service.jobs.publication import ALL, Published, Publishing, form

FolderOf = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the release into this folder.")]
FileOf = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the selection here, as JSON.")]
WrittenOf = Annotated[Literal["parquet", "csv"] | None, typer.Option("--format", help="How its tables are written.")]


def command(publishing: Publishing) -> Callable[..., None]:
    """The command of a release: DATASET, spend, where to write, and an option for each parameter of its form."""
    asks = form(publishing)
    options: dict[str, Any] = {"epsilon": EpsilonOf, "delta": DeltaOf, "rho": RhoOf}
    options |= {"out": FolderOf, "format": WrittenOf} if asks.kind == "release" else {"out": FileOf}
    options |= {"table": TableOf, "view": ViewOf, "config": ConfigOf}
    return signature.command(asks, options, lambda dataset, given: _run(publishing, asks, dataset, given))


def _run(publishing: Publishing, asks: Form, dataset: str, given: dict[str, Any]) -> None:
    spend = spend_of(given["epsilon"], given["rho"], given["delta"])
    named = chosen(asks, given)
    out: Path | None = given["out"]
    if out is None and asks.kind == "release":
        raise QuestionError("bad-question", "A release is kept in a folder.", "Name it: --out published.")
    check_writable(out, asks.kind, folder=asks.kind == "release")
    if out is not None and asks.kind == "release":
        replaced(out)
    with asked(dataset, given["config"]) as db, progress(asks.name) as tell:
        found = Published(publishing(rows_of(db, given["table"], given["view"]), **named, spend=spend, progress=tell))
        left = db.remaining
    if out is not None:  # before anything else: what was paid for is kept
        found.save(out, given.get("format") or "parquet")
    console.print(f"{found.title}\n{found.paid}; left {left}", markup=False)
    for table in found.tables():
        console.print(f"\n{table.text()}", markup=False)
    if out is not None:
        package = "release" if asks.kind == "release" else "select"
        console.print(f"\nIt is in {out}: sulq.{package}.load({str(out)!r})", markup=False)


release = signature.group(
    "release",
    "release",
    "Publish an object once, at one price, that needs the data no more.",
    {each.__name__: command(each) for each in ALL},
)
