"""`sulq budget`: what a dataset's people may lose, have lost, and have left."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sulq.cli.open import address, declared, ledger_of, remote
from sulq.cli.show import console
from sulq.curator.ledger.ledger import Ledger
from sulq.errors import SetupError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear


def budget(
    dataset: Annotated[str, typer.Argument(help="A data file with its NAME.sulq.toml, a name in sulq.toml, or a URL.")],
    raise_to: Annotated[
        str | None, typer.Option("--raise-to", help="Raise the total (epsilon, rho or queries); an entry for ever.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="The sulq.toml to read.")] = None,
) -> None:
    """Show the budget, what is spent and what is left; the data is not opened."""
    url = address(dataset, config)
    if url is not None:
        _remote(url, raise_to)
        return
    found = declared(dataset, config)
    path = ledger_of(found)
    if isinstance(path, Path) and not path.is_file():
        console.print(f"No ledger yet: nothing of {found.budget} is spent.")
        return
    with Ledger.open(path, unit=None, budget=None, mechanisms=tuple(MECHANISMS)) as ledger:
        if raise_to is not None:
            ledger.raise_to(raised(ledger.budget, raise_to))
        table = Table(show_header=False, box=None)
        table.add_row("protects", str(ledger.unit))
        table.add_row("budget", str(ledger.budget))
        table.add_row("spent", str(ledger.spent))
        table.add_row("left", str(ledger.remaining))
        table.add_row("answers", str(len(ledger.transcript())))
        table.add_row("ledger", str(path))
        console.print(table)


def _remote(url: str, raise_to: str | None) -> None:
    """A remote curator's budget, as this token's share of it."""
    if raise_to is not None:
        raise SetupError("bad-config", "A budget is raised where the ledger is.")
    with remote(url) as client:
        facts = client.facts
        table = Table(show_header=False, box=None)
        table.add_row("protects", str(facts.unit))
        table.add_row("budget", str(facts.budget))
        table.add_row("spent", str(facts.spent))
        table.add_row("left", str(facts.remaining))
        console.print(table)


def raised(budget: Budget, text: str) -> Budget:
    """The same kind of budget with a higher total."""
    try:
        total = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise SetupError("budget-mismatch", f"{text!r} is not a number.") from None
    if isinstance(budget, SubLinear):
        return SubLinear(budget.epsilon, budget.delta, int(total), budget.calibration)
    if isinstance(budget, EpsilonDelta):
        return EpsilonDelta(total, budget.delta)
    return Epsilon(total) if isinstance(budget, Epsilon) else Rho(total)
