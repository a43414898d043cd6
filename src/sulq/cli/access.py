"""`sulq access`: the access log of a server, on the host that runs it."""

from __future__ import annotations

import csv
import getpass
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from sulq.cli.config import CONFIG, read
from sulq.cli.show import console
from sulq.errors import QuestionError, SetupError
from sulq.service.clerk import access_log
from sulq.service.clerk.access import Access
from sulq.service.clerk.access_log import AccessEntry
from sulq.service.clerk.call_record import plain

access = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show, export and verify a server's log of acts and asks."
)
ConfigOf = Annotated[Path | None, typer.Option("--config", help="The sulq.toml of the server; default: here.")]
Since = Annotated[
    str | None, typer.Option("--since", help="From this day or moment on, in UTC: 2026-01-31, or T12:00.")
]
Who = Annotated[str | None, typer.Option("--who", help="Of this name alone; on the host it is host:USER.")]
Dataset = Annotated[str | None, typer.Option("--dataset", help="About this dataset alone.")]
OWN: Final = ("seq", "when", "what", "who", "from", "request", "dataset", "outcome")  # what has a column of its own
FORMATS: Final = ("jsonl", "csv")


def log_path(config: Path | None) -> Path:
    """Where a server's access log lies."""
    return read(config or Path(CONFIG)).server.state / "access.log"


def host_act(store: Access, what: str, **told: object) -> AbstractContextManager[None]:
    """An administrative act on the host, written down before it is done; a token in place of a name is not repeated."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # of a user that has no name
        user = str(os.getuid())
    words = {name: plain(value) for name, value in told.items()}
    return store.log.act(what, **{"who": f"host:{user}", "from": "host", **words})


@access.command("show")
def show(
    config: ConfigOf = None,
    since: Since = None,
    who: Who = None,
    dataset: Dataset = None,
    last: Annotated[int, typer.Option(help="How many of the latest entries to show.")] = 50,
) -> None:
    """Show the latest entries; an act whose outcome is known is one line."""
    found = list(_chosen(access_log.entries(log_path(config)), since, who, dataset))
    over = {entry.body.get("of") for entry in found}
    table = Table("entry", "when (UTC)", "who", "from", "what", "dataset", "outcome", "more")
    for entry in [entry for entry in found if entry.seq not in over][-max(last, 0) :]:
        body = entry.body
        words = [str(body.get(name) or "") for name in ("who", "from", "what", "dataset", "outcome")]
        more = json.dumps(_more(body)) if _more(body) else ""
        table.add_row(str(entry.seq), _moment(body), *map(escape, words), escape(more))
    console.print(table)


@access.command("export")
def export(
    config: ConfigOf = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or csv.")] = "jsonl",
    since: Since = None,
    who: Who = None,
    dataset: Dataset = None,
) -> None:
    """Print all entries, each checked to follow the one before; csv keeps what has no column of its own as JSON."""
    if form not in FORMATS:
        raise QuestionError("bad-parameter", f"A format is one of {', '.join(FORMATS)}.", "Say --format jsonl or csv.")
    found = _chosen(access_log.entries(log_path(config)), since, who, dataset)
    if form == "jsonl":
        for entry in found:
            print(json.dumps(entry.told(), ensure_ascii=False, sort_keys=True))
        return
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow([*OWN, "more"])
    for entry in found:
        told = entry.told()
        table.writerow([*(_cell(told.get(name)) for name in OWN), json.dumps(_more(entry.body), ensure_ascii=False)])


@access.command("verify")
def verify(
    config: ConfigOf = None,
    head: Annotated[
        str | None, typer.Option("--head", help="ENTRY:HASH as an earlier check printed it: it must still stand.")
    ] = None,
) -> None:
    """Check every entry and the chain; note the head it prints elsewhere, and a later check finds what was cut off."""
    path = log_path(config)
    many, digest = access_log.verify(path)
    if head is not None:
        seq, _, wanted = head.partition(":")
        if not seq.isdecimal() or access_log.hash_at(path, int(seq)) != wanted:
            raise SetupError("access-damaged", f"The log does not hold the entry {head[:100]!r} that was noted.")
    console.print(f"sound: {many} entries, head {many}:{digest}", soft_wrap=True)


def _chosen(
    entries: Iterable[AccessEntry], since: str | None, who: str | None, dataset: str | None
) -> Iterable[AccessEntry]:
    try:
        moment = None if since is None else datetime.fromisoformat(since)
    except ValueError:
        raise QuestionError("bad-parameter", f"--since {since!r} is no moment.", "Write 2026-01-31 or more.") from None
    start = 0.0 if moment is None else (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    for entry in entries:
        fits = who is None or str(entry.body.get("who")).lower() == who.lower()
        fits = fits and (dataset is None or entry.body.get("dataset") == dataset)
        if fits and int(str(entry.body["when"])) >= start:
            yield entry


def _more(body: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in body.items() if name not in OWN and value is not None}


def _moment(body: Mapping[str, object]) -> str:
    return datetime.fromtimestamp(int(str(body["when"])), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _cell(value: object) -> object:
    """A cell of a table; one that a spreadsheet would take for a formula is made text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
