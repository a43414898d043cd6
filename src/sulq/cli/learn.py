"""`sulq learn NAME DATASET`: a command for each learner, made from its signature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from sulq.api.relations import rows_of
from sulq.cli import signature
from sulq.cli.open import asked
from sulq.cli.query import BoundsOf, ConfigOf, EpsilonOf, RhoOf, TableOf, ViewOf, spend_of
from sulq.cli.show import console
from sulq.cli.signature import DeltaOf, check_writable, chosen, progress
from sulq.errors import QuestionError
from sulq.forms.signature import Form
from sulq.learn import LEARNERS
from sulq.learn.base import Learner, form
from sulq.learn.render import text

XOf = Annotated[str | None, typer.Option("--x", metavar="A,B,C", help="The columns to learn from.")]
YOf = Annotated[str | None, typer.Option("--y", metavar="LABEL", help="The column to predict.")]
OutOf = Annotated[Path | None, typer.Option("--out", help="Write the model here, as JSON for sulq.learn.load.")]


def command(learner: type[Learner]) -> Callable[..., None]:
    """The command of a learner: DATASET, columns, spend, and an option for each parameter of its form."""
    asks = form(learner)
    options: dict[str, Any] = {"x": XOf, "y": YOf, "epsilon": EpsilonOf, "delta": DeltaOf, "rho": RhoOf, "out": OutOf}
    if not asks.supervised:
        del options["y"]
    options |= {"table": TableOf, "view": ViewOf, "bounds": BoundsOf, "config": ConfigOf}
    return signature.command(asks, options, lambda dataset, given: _run(learner, asks, dataset, given))


def _run(learner: type[Learner], asks: Form, dataset: str, given: dict[str, Any]) -> None:
    spend = spend_of(given["epsilon"], given["rho"], given["delta"])
    model = learner(**chosen(asks, given))
    names = [name.strip() for name in (given["x"] or "").split(",") if name.strip()]
    if not names:
        raise QuestionError("bad-question", f"{asks.name} needs columns to learn from.", "Name them: --x age,income.")
    if asks.supervised and not given["y"]:
        raise QuestionError("bad-question", f"{asks.name} needs a column to predict.", "Name it: --y smoker.")
    check_writable(given["out"], "model")
    with asked(dataset, given["config"]) as db, progress(asks.name) as tell:
        rows = rows_of(db, given["table"], given["view"])
        label = rows[given["y"]] if asks.supervised else None
        model.fit(rows[names], label, spend=spend, progress=tell, bounds=given["bounds"])
        left = db.remaining
    console.print(text(model), markup=False)
    for name, (low, high) in getattr(model, "bounds_", {}).items():
        console.print(f"{name} is clipped to [{low:,.6g}, {high:,.6g}]", markup=False)
    for note in getattr(model, "notes_", ()):
        console.print(note, markup=False)
    guarantee = "" if model.guarantee_ == "dp" else f"; guarantee {model.guarantee_}"
    console.print(f"spent {model.spent_}, left {left}; protects {model.unit_}{guarantee}", markup=False)
    if given["out"] is not None:
        model.save(given["out"])
        console.print(f"The model is in {given['out']}: sulq.learn.load({str(given['out'])!r})", markup=False)


learn = signature.group(
    "learn",
    "learner",
    "Learn a model from private columns, at one price.",
    {each.__name__: command(each) for each in LEARNERS},
)
