"""`sulq budget` and `sulq prepare`: what people may lose and have lost; a copy made ahead of the first question."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from sulq.answers.budget import BudgetReport
from sulq.api.declarations import in_spark
from sulq.cli.open import address, declared, ledger_of, opened, remote
from sulq.cli.show import console
from sulq.curator.ledger.ledger import Ledger
from sulq.errors import SetupError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.facts import Facts
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear

ConfigOf = Annotated[Path | None, typer.Option(help="The sulq.toml to read.")]


def budget(
    dataset: Annotated[str, typer.Argument(help="A data file with its NAME.sulq.toml, a name in sulq.toml, or a URL.")],
    raise_to: Annotated[
        str | None, typer.Option("--raise-to", help="Raise the total (epsilon, rho or queries); an entry for ever.")
    ] = None,
    config: ConfigOf = None,
) -> None:
    """Show the budget, what is spent and what is left; the data is not opened."""
    url = address(dataset, config)
    if url is not None:  # a remote curator's, as this token's share of it
        if raise_to is not None:
            raise SetupError("bad-config", "A budget is raised where the ledger is.")
        with remote(url) as client:
            _show(client.facts)
        return
    found = declared(dataset, config)
    path = ledger_of(found)
    if isinstance(path, Path) and not path.is_file():
        console.print(f"No ledger yet: nothing of {found.budget} is spent.")
        return
    with Ledger.open(path, unit=None, budget=None, mechanisms=tuple(MECHANISMS)) as ledger:
        if raise_to is not None:
            ledger.raise_to(raised(ledger.budget, raise_to))
        _show(ledger, answers=len(ledger.transcript()), ledger=path)


def _show(known: Ledger | Facts, **more: object) -> None:
    table = Table("", Column(overflow="fold"), show_header=False, box=None)
    rho, whose = (known.rho, known.whose) if isinstance(known, Facts) else (known.rho_left(), "everyone")
    report = BudgetReport(known.budget, known.spent, known.remaining, rho, known.unit, whose, known.split)
    for name, value in ({"protects": known.unit} | report.lines() | more).items():
        table.add_row(name, Text(str(value)))
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


def prepare(
    dataset: Annotated[str, typer.Argument(help="A data file with its NAME.sulq.toml, or a name in sulq.toml.")],
    renew: Annotated[bool, typer.Option("--renew", help="Accept data that changed since it was registered.")] = False,
    new_people: Annotated[
        bool,
        typer.Option(
            "--new-people", help="Begin the ledger that is named although another covers this data; it is recorded."
        ),
    ] = False,
    config: ConfigOf = None,
) -> None:
    """Clamp, quantise and bound the rows once, so that every question is fast; spends nothing.

    Where the unit says rows = "auto", the first time buys the histogram that the number of rows is chosen from.
    """
    found = declared(dataset, config)
    if in_spark(found.data):
        raise SetupError(
            "bad-config",
            "Rows of Spark are prepared in the cluster's memory, and go with the process that asked for it.",
            "Call db.prepare() in the process that asks; sulq query prepares by itself.",
        )
    bar = Progress(TextColumn("preparing"), BarColumn(), TimeElapsedColumn(), console=console, transient=True)
    with bar:
        task = bar.add_task("preparing", total=1.0)
        with opened(
            found, renew=renew, new_people=new_people, progress=lambda part: bar.update(task, completed=part)
        ) as database:
            database.prepare()
            choice = database.facts.choice
    if choice is not None:
        console.print(str(choice), markup=False)
    spent = (
        "nothing was spent" if choice is None else f"nothing was spent but for entry {choice.entry} of the ledger, once"
    )
    console.print(f"{found.name} is prepared; {spent}.")
    console.print(f"How the declarations fit its rows, for you alone: sulq check {dataset}", markup=False)
