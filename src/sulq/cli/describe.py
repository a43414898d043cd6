"""`sulq describe`: the columns of a dataset in numbers, for one price at one debit."""

from __future__ import annotations

import csv
import json
import sys
from typing import Annotated

import typer

from sulq.cli.open import asked
from sulq.cli.query import ConfigOf, Dataset, DeltaOf, EpsilonOf, FormatOf, LawOf, RhoOf, SamplingOf, moment, spend_of
from sulq.cli.show import console


def describe(
    dataset: Dataset,
    columns: Annotated[
        list[str] | None, typer.Argument(metavar="[COLUMN]...", help="Which columns; all that are declared, if none.")
    ] = None,
    *,
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    law: LawOf = None,
    interval: Annotated[
        bool | None,
        typer.Option("--interval/--no-interval", help="Buy intervals of quartiles; without, they are nearer."),
    ] = None,
    charts: Annotated[bool | None, typer.Option("--charts/--no-charts", help="Buy a small histogram a number.")] = None,
    sampling: SamplingOf = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say how the price would be divided; nothing is spent.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="New noise at full price instead of a stored answer.")] = False,
    format: FormatOf = "table",  # noqa: A002 - the option is called so
    config: ConfigOf = None,
) -> None:
    """Describe columns: counts, missing cells, means, deviations, quartiles and categories, each with an error bar."""
    with asked(dataset, config) as db:
        spend, wish = spend_of(epsilon, rho, delta), columns or None
        if plan:
            divided = db.describe_plan(wish, spend=spend, law=law, interval=interval, charts=charts)
            console.print(repr(divided), markup=False)
            return
        found = db.describe(wish, spend=spend, fresh=fresh, law=law, interval=interval, charts=charts)
        found = found.with_sampling() if sampling else found
        if format == "table":
            console.print(repr(found), markup=False, soft_wrap=True)
            return
        table = found.to_dict(0.95)
        rows = [list(row) for row in zip(*table.values(), strict=True)]
        if format == "json":
            told = {"columns": list(table), "rows": rows, "spent": str(found.spent), "notes": list(found.notes)}
            print(json.dumps(told, default=moment, ensure_ascii=False))
            return
        writer = csv.writer(sys.stdout)
        writer.writerows([list(table), *rows])
