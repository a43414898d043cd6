"""`sulq prepare`: build the prepared copy of a dataset ahead of its first question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sulq.api.declarations import in_spark
from sulq.cli.open import declared, opened
from sulq.cli.show import console
from sulq.errors import SetupError


def prepare(
    dataset: Annotated[str, typer.Argument(help="A data file with its NAME.sulq.toml, or a name in sulq.toml.")],
    renew: Annotated[bool, typer.Option("--renew", help="Accept data that changed since it was registered.")] = False,
    new_people: Annotated[
        bool,
        typer.Option(
            "--new-people", help="Begin the ledger that is named although another covers this data; it is recorded."
        ),
    ] = False,
    config: Annotated[Path | None, typer.Option(help="The sulq.toml to read.")] = None,
) -> None:
    """Clamp, quantise and bound the rows once, so that every question is fast; spends nothing."""
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
    console.print(f"{found.name} is prepared; nothing was spent.")
