"""`sulq analyst`: who may ask a server, on the host that runs it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sulq.cli.access import ConfigOf, host_act
from sulq.cli.config import CONFIG, read
from sulq.cli.show import console
from sulq.errors import QuestionError
from sulq.service.clerk.access import ALL, Access
from sulq.service.clerk.registration import RegisteredStore
from sulq.service.clerk.request import check_datasets
from sulq.service.clerk.tokens import TOKEN_DAYS

analyst = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Let analysts in, list them, rotate and end their tokens."
)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}  # seconds
Name = Annotated[str, typer.Argument(help="Whose token it is.")]


def access(config: Path | None) -> Access:
    """The access store of a server."""
    return Access(read(config or Path(CONFIG)).server.state / "access.db")


@analyst.command("add")
def add(
    name: Name,
    role: Annotated[str, typer.Option("--role", help="owner, analyst or auditor.")] = "analyst",
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="A dataset they may see (may be repeated); default: none.")
    ] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all-datasets", help="They may see every dataset, also those registered later.")
    ] = False,
    days: Annotated[int, typer.Option("--days", help="How long the token lives.")] = TOKEN_DAYS,
    config: ConfigOf = None,
) -> None:
    """Give somebody a token, printed this once; an earlier token of that name ends now. A revoked name is refused."""
    if every and dataset:
        raise QuestionError("bad-principal", "Name datasets, or say --all-datasets, not both.")
    found = read(config or Path(CONFIG))
    check_datasets(dataset or (), {*found.datasets, *RegisteredStore(found.server.state / "datasets").names})
    scope = ALL if every else dataset or []
    told = {"name": name, "role": role, "datasets": scope, "days": days}
    with access(config) as store, host_act(store, "add_principal", **told):
        token = store.add(name, role, scope, days, replace=True)
    if role != "owner" and not scope:
        _speak(f"{name} may see no dataset: name some with --dataset, or say --all-datasets.")
    _speak(f"{name} is let in as {role} for {days} days. The token is shown this once:")
    print(token)


@analyst.command("rotate")
def rotate(
    name: Name,
    overlap: Annotated[
        str, typer.Option("--overlap", help="How long the old token is good beside the new one: 90m, 24h, 7d, or 0.")
    ] = "24h",
    days: Annotated[int, typer.Option("--days", help="How long the new token lives.")] = TOKEN_DAYS,
    config: ConfigOf = None,
) -> None:
    """Give somebody a new token, printed this once; the old one ends when the overlap does."""
    seconds = _seconds(overlap)
    with access(config) as store, host_act(store, "rotate", name=name, overlap=seconds, days=days):
        token = store.rotate(name, seconds, days)
    _speak(f"{name} has a new token for {days} days; the old one ends in {overlap}. The new one is shown this once:")
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
    """End somebody's tokens and sessions, from the next call on; never the last owner's."""
    with access(config) as store, host_act(store, "revoke", name=name):
        store.revoke(name)
    console.print(escape(f"{name}'s tokens have ended; the name is not given again."))


def _speak(words: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(escape(words))


def _seconds(span: str) -> int:
    """A span of time such as 90m, 24h or 7d; a number alone is in seconds."""
    number, unit = span.rstrip("smhd"), span[len(span.rstrip("smhd")) :]
    if not number.isdecimal() or len(number) > 9 or unit not in ("", *UNITS):
        raise QuestionError("bad-principal", f"{span!r} is no span of time.", "Write 90m, 24h, 7d, or 0.")
    return int(number) * UNITS.get(unit, 1)


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
