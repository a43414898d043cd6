"""`sulq explain`: what a query would ask, cost and be worth; reads no row and spends nothing."""

from __future__ import annotations

from sulq.cli.open import asked
from sulq.cli.query import (
    AtMost,
    BetaOf,
    ConfigOf,
    Dataset,
    DeltaOf,
    EpsilonOf,
    OtherOf,
    RhoOf,
    Text,
    WithinOf,
    spend_of,
    within_of,
)
from sulq.cli.show import console


def explain(
    dataset: Dataset,
    sql: Text,
    *,
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    within: WithinOf = None,
    beta: BetaOf = 0.05,
    at_most: AtMost = None,
    other: OtherOf = None,
    config: ConfigOf = None,
) -> None:
    """Explain a query: its questions, sensitivity and why, noise, split of the spend, expected accuracy."""
    with asked(dataset, config) as db:
        found = db.explain(
            sql,
            spend=spend_of(epsilon, rho, None if at_most else delta),
            within=within_of(within),
            beta=beta,
            at_most=spend_of(at_most, None, delta) if at_most else None,
            other=other,
        )
        console.print(str(found), markup=False)
