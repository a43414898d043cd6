"""`sulq analyst`: who may ask a server, on the host that runs it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sulq.cli.config import CONFIG, read
from sulq.cli.show import console
from sulq.service.clerk.access import TOKEN_DAYS, Access
from sulq.service.clerk.registration import RegisteredStore
from sulq.service.clerk.request import check_datasets

analyst = typer.Typer(add_completion=False, no_args_is_help=True, help="Let analysts in, list them, end their tokens.")
ConfigOf = Annotated[Path | None, typer.Option("--config", help="The sulq.toml of the server; default: here.")]
Name = Annotated[str, typer.Argument(help="Whose token it is.")]


def access(config: Path | None) -> Access:
    """The access store of a server."""
    return Access(read(config or Path(CONFIG)).server.state / "access.db")


@analyst.command("add")
def add(
    name: Name,
    role: Annotated[str, typer.Option("--role", help="owner, analyst or auditor.")] = "analyst",
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="A dataset they may see (may be repeated); default: all.")
    ] = None,
    days: Annotated[int, typer.Option("--days", help="How long the token lives.")] = TOKEN_DAYS,
    config: ConfigOf = None,
) -> None:
    """Give somebody a token, printed this once; an earlier token of that name ends now."""
    found = read(config or Path(CONFIG))
    check_datasets(dataset or (), {*found.datasets, *RegisteredStore(found.server.state / "datasets").names})
    with access(config) as store:
        token = store.add(name, role, dataset or None, days, replace=True)
    Console(stderr=True, soft_wrap=True, highlight=False).print(
        escape(f"{name} is let in as {role} for {days} days. The token is shown this once:")
    )
    print(token)


@analyst.command("list")
def show(config: ConfigOf = None) -> None:
    """Show everybody who was ever let in; tokens are not kept and cannot be shown."""
    table = Table("name", "role", "datasets", "until", "ended")
    with access(config) as store:
        for known in store.list():
            scope = "all" if known.datasets is None else ", ".join(known.datasets)
            ended = "" if known.revoked is None else _day(known.revoked)
            table.add_row(escape(known.name), known.role, escape(scope), _day(known.expires), ended)
    console.print(table)


@analyst.command("revoke")
def revoke(name: Name, config: ConfigOf = None) -> None:
    """End somebody's token, from the next call on."""
    with access(config) as store:
        store.revoke(name)
    console.print(escape(f"{name}'s token has ended."))


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
