"""`sulq ledger`: look at a ledger and check that nothing in it was touched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sulq.cli.show import console
from sulq.curator.ledger.ledger import Ledger, verify
from sulq.errors import SetupError
from sulq.mechanisms import MECHANISMS

ledger = typer.Typer(no_args_is_help=True, help="Look at a ledger and check it.")
Where = Annotated[Path, typer.Argument(help="The ledger file.")]


def _exists(path: Path) -> Path:
    if not path.is_file():
        raise SetupError("missing-file", f"There is no ledger {path.name!r}.")
    return path


@ledger.command("verify")
def check(path: Where) -> None:
    """Check every entry, the chain, the totals and the budget; changes nothing."""
    report = verify(_exists(path), mechanisms=tuple(MECHANISMS))
    console.print(f"sound: {report}")


@ledger.command("show")
def show(path: Where, last: Annotated[int, typer.Option(help="How many of the latest debits to show.")] = 20) -> None:
    """Show the unit, the budget, what is left, and the latest debits."""
    with Ledger.open(_exists(path), unit=None, budget=None, mechanisms=tuple(MECHANISMS)) as opened:
        console.print(f"protects {opened.unit}; budget {opened.budget}; spent {opened.spent}; left {opened.remaining}")
        if opened.synthetic:
            console.print("synthetic data: not private")
        if opened.declared_public:
            console.print(f"public by the owner's word: {', '.join(opened.declared_public)}")
        table = Table("entry", "time", "loss", "noise", "answered")
        for line in opened.transcript()[-last:]:
            event = line.event
            loss = f"epsilon {float(event.epsilon):.6g}" if event.epsilon is not None else f"rho {float(event.rho):.6g}"
            loss = f"{event.queries} queries" if event.queries else loss
            noise = ", ".join(sorted({f"{draw.mechanism} x {draw.cells}" for draw in event.draws}))
            table.add_row(str(line.seq), line.time, loss, noise, "yes" if line.answer is not None else "no")
        console.print(table)
