"""`sulq check`: how declarations fit the rows, counted exactly, for the owner at the host alone."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from sulq.api.connect import check as count
from sulq.cli.open import declared
from sulq.cli.owner import ConfigOf
from sulq.cli.show import console

NEXT = """\
Where a column does not fit, correct its declaration from what you know of it: a code book, the form it was asked by.
Bounds and values that are read off these counts give the rows away: what you change now is recorded, and shown to
analysts as declared after looking at the data."""


def check(
    dataset: Annotated[str, typer.Argument(help="A data file with its NAME.sulq.toml, or a name in sulq.toml.")],
    config: ConfigOf = None,
) -> None:
    """Count how the declarations fit the rows: for you alone, not to be published.

    Per column: cells that are missing, unreadable, not on the list, or clamped; rows that are dropped; declared values
    that never occur. It spends nothing, keeps nothing of the counts, and suggests no bounds. A note beside the ledger
    says that you looked.
    """
    found = declared(dataset, config)
    words = found.words()
    told = {name: words[name] for name in inspect.signature(count).parameters if name in words}
    report = count(**told, ledger=found.ledger)
    console.print(str(report), markup=False)
    console.print("")
    console.print(NEXT if not report.fits else "Every cell is read as it stands, and no row is dropped.", markup=False)
