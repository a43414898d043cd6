"""`sulq forget`: persons' rows erased from the prepared copy, for good, under the same ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sulq.cli.open import declared, opened
from sulq.cli.owner import ConfigOf
from sulq.cli.show import console
from sulq.errors import SetupError


def forget(
    dataset: Annotated[str, typer.Argument(help="A data file with its NAME.sulq.toml, or a name in sulq.toml.")],
    persons: Annotated[
        list[str] | None, typer.Argument(help="Ids; better in a file, as a shell keeps what is typed.")
    ] = None,
    *,
    file: Annotated[Path | None, typer.Option("--from", help="A file of ids, one a line; - is standard input.")] = None,
    config: ConfigOf = None,
) -> None:
    """Erase persons' rows, for good, under the same ledger; nothing is given back of the budget.

    The copy is prepared again without them, and they stay out whenever it is. No id is printed, logged or kept.
    """
    ids = [*(persons or ()), *(() if file is None else _lines(file))]
    if not ids:
        raise SetupError("bad-config", "Nobody is named.", "Name ids, or a file of them: --from FILE.")
    found = declared(dataset, config)
    with opened(found) as database:
        erased = database.forget(ids)
    with opened(found) as database:
        database.prepare()
    console.print(str(erased), markup=False)


def _lines(file: Path) -> list[str]:
    """The ids of a file, as they stand; empty lines name nobody."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise SetupError("missing-file", "The file of ids cannot be read as UTF-8.") from None
    return [line for line in text.removeprefix("\ufeff").splitlines() if line]
