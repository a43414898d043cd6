"""`sulq heavy`: buy the share of persons who have more rows than are kept of them."""

from __future__ import annotations

from typing import Annotated

import typer

from sulq.cli.open import asked
from sulq.cli.query import ConfigOf, Dataset, DeltaOf, EpsilonOf, RhoOf, spend_of
from sulq.cli.show import console


def heavy(
    dataset: Dataset,
    *,
    table: Annotated[str, typer.Option("--table", help="Of several tables, the one that is meant.")] = "",
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    config: ConfigOf = None,
) -> None:
    """Buy, once, how many persons have more rows than are kept; their share stands beside every later answer."""
    with asked(dataset, config) as db:
        console.print(repr(db.heavy_persons(table=table, spend=spend_of(epsilon, rho, delta))), markup=False)
