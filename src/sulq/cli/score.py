"""`sulq score MODEL DATASET`: how good a saved model is on a dataset's rows, at one price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from sulq.cli.open import asked
from sulq.cli.query import ConfigOf, Dataset, DeltaOf, EpsilonOf, RhoOf, spend_of
from sulq.cli.show import console
from sulq.display.text_table import cell
from sulq.errors import QuestionError
from sulq.learn import evaluate, load

ModelOf = Annotated[Path, typer.Argument(metavar="MODEL", help="What `sulq learn --out` or model.save wrote.")]
LabelOf = Annotated[str | None, typer.Option("--y", metavar="LABEL", help="The column that is predicted.")]
ShownAs = Annotated[Literal["table", "json"], typer.Option("--format", help="How the measures are printed.")]


def score(
    model: ModelOf,
    dataset: Dataset,
    *,
    y: LabelOf = None,
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    format: ShownAs = "table",  # noqa: A002 - the option is called so
    config: ConfigOf = None,
) -> None:
    """Judge a saved model on private rows: accuracy, matrix and curves of classes, R2 of numbers; one debit."""
    learned = load(model)
    if learned.kind != "unsupervised" and not y:
        raise QuestionError("bad-question", "This model needs the column that it predicts.", "Name it: --y smoker.")
    with asked(dataset, config) as db:
        label = db[y] if y and learned.kind != "unsupervised" else None
        found = evaluate(learned, db[list(learned.feature_names_in_)], label, spend=spend_of(epsilon, rho, delta))
    if format == "table":
        console.print(repr(found), markup=False)
        return
    told = {}
    for name, answer in found.measures().items():
        ends = (answer.value, *answer.interval(0.95))
        told[name] = {
            what: cell(float(cast("float", end))) for what, end in zip(("value", "low", "high"), ends, strict=True)
        }
    typer.echo(json.dumps({"model": found.model, "measures": told, "spent": str(found.spent)}))
