"""`sulq ledger`: look at a ledger, check it and the receipts it gave, share its budget, mend it after a restore."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from sulq.answers import wire
from sulq.cli.config import is_file
from sulq.cli.show import console
from sulq.curator.ledger.backup import backup, restore
from sulq.curator.ledger.history import Declaration
from sulq.curator.ledger.ledger import Ledger, verify
from sulq.curator.ledger.ledger import reconcile as burn_gap
from sulq.curator.ledger.postgres_place import is_address
from sulq.curator.ledger.shares import Share
from sulq.curator.ledger.view import check_receipt
from sulq.display.progress import Working, screen
from sulq.errors import SetupError
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.mechanisms import MECHANISMS

ledger = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Look at a ledger, check it and its receipts, share its budget."
)
Where = Annotated[str, typer.Argument(help="The ledger: its file, or its postgresql:// URL.")]
MAX_RECEIPT_BYTES = 2**20  # bytes of a receipt


def _exists(path: str) -> str:
    if not is_address(path) and not is_file(Path(path)):
        raise SetupError("missing-file", f"There is no ledger {Path(path).name!r}.")
    return path


@ledger.command("verify")
def verified(path: Where) -> None:
    """Check every entry, the chain, the totals and the budget; changes nothing."""
    with Working("verifying the ledger", screen()):
        report = verify(_exists(path), mechanisms=tuple(MECHANISMS))
    console.print(f"sound: {report}")


@ledger.command("show")
def show(path: Where, last: Annotated[int, typer.Option(help="How many of the latest debits to show.")] = 20) -> None:
    """Show the unit, the budget, what is left and whose it is, all that was declared, and the latest debits."""
    with Ledger.open(_exists(path), unit=None, budget=None, mechanisms=tuple(MECHANISMS), create=False) as opened:
        console.print(f"protects {opened.unit}; budget {opened.budget}; spent {opened.spent}; left {opened.remaining}")
        console.print(f"receipts are signed by {opened.public_key}")
        if opened.synthetic:
            console.print("synthetic data: not private")
        if opened.declared_public:
            console.print(f"public by the owner's word: {', '.join(opened.declared_public)}")
        for place, others in sorted({(cover.place, cover.new_people) for cover in opened.book.covers}):
            word = ", whose people no other ledger protects by the owner's word" if others else ""
            console.print(f"covers {escape(place)}{word}")
        for told in opened.declarations:
            _declared(told)
        _shares(opened)
        table = Table("entry", "time", "analyst", "loss", "noise", "answered")
        for line in opened.transcript()[-last:]:
            event = line.event
            loss = f"epsilon {float(event.epsilon):.6g}" if event.epsilon is not None else f"rho {float(event.rho):.6g}"
            loss = f"{event.queries} queries" if event.queries else loss
            noise = ", ".join(sorted({f"{draw.mechanism} x {draw.cells}" for draw in event.draws}))
            answered = "yes" if line.answer is not None else "no"
            table.add_row(str(line.seq), line.time, escape(line.analyst), loss, noise, answered)
        console.print(table)


def _declared(told: Declaration) -> None:
    """What an owner declared in one entry, and whether answers had been given by then (SR28)."""
    data, before = told.data, told.before
    size = "no size" if data.size is None else f"size {data.size:,}"
    public = ", public" if data.public else ""
    words = (
        f"entry {told.seq}, {told.time}: {data.name} is declared {data.declarations[:12]}, {size}{public} {told.late}"
    )
    console.print(escape(words.rstrip()))
    more = len({*data.erased} - {*(before.erased if before is not None else ())})
    if more:
        console.print(f"the rows of {more} more {'id is' if more == 1 else 'ids are'} left out, where there are any")
    if data.looked != (before.looked if before is not None else ()):
        console.print(f"declared after looking at the data: {', '.join(data.looked)}", markup=False)
    if data.choice is not None and (before is None or before.choice is None):
        console.print(
            f"at most {data.choice.rows} rows a person, chosen from the histogram of entry {data.choice.entry}"
        )
    known = [] if before is None else [wire.encode(item) for item in before.estimators]
    for item in data.estimators:
        late = "" if wire.encode(item) in known else told.late
        console.print(escape(f"estimator of {data.name}: {item} {late}".rstrip()))


def _shares(opened: Ledger) -> None:
    found = [standing for standing in opened.standings() if standing.analyst]
    if found:
        table = Table("analyst", "share", "reserve", "spent", "left")
        for name, share, reserve, spent, left in found:
            table.add_row(escape(name), f"{float(share):.6g}", f"{float(reserve):.6g}", str(spent), str(left))
        console.print(table)


@ledger.command("share")
def share(
    path: Where,
    analyst: Annotated[str, typer.Argument(help="The analyst's name.")],
    part: Annotated[str, typer.Option("--share", help="What part of the budget it may spend: 0.25, or 1/4.")] = "1",
    reserve: Annotated[str, typer.Option(help="What part of it no other analyst can take away.")] = "0",
) -> None:
    """Set what part of the budget an analyst may spend, and what is kept for it; an entry for ever."""
    with Ledger.open(_exists(path), unit=None, budget=None, mechanisms=tuple(MECHANISMS), create=False) as opened:
        opened.share(analyst, Share.of(part, reserve))
        _shares(opened)


@ledger.command("receipt")
def receipt(path: Where, entry: Annotated[int, typer.Argument(help="The entry of the debit.")]) -> None:
    """Print a debit's signed receipt, for an analyst to keep."""
    with Ledger.open(_exists(path), unit=None, budget=None, mechanisms=tuple(MECHANISMS), create=False) as opened:
        print(opened.receipt(entry))


@ledger.command("check")
def check(
    receipt: Annotated[str, typer.Argument(help="The receipt's file; - reads standard input.")],
    key: Annotated[str | None, typer.Option(help="The ledger's public key, as its owner published it.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger, to see that the entry is still there.")] = None,
) -> None:
    """Check a receipt that was kept: that its ledger signed it, and with the ledger that it still stands."""
    if receipt == "-":
        text = sys.stdin.buffer.read(MAX_RECEIPT_BYTES)
    elif not is_file(Path(receipt)):
        raise SetupError("missing-file", f"There is no receipt {Path(receipt).name!r}.")
    else:
        with Path(receipt).open("rb") as file:
            text = file.read(MAX_RECEIPT_BYTES)
    found = check_receipt(text, key=key, ledger=None if ledger is None else _exists(ledger))
    console.print(f"signed: {escape(str(found))}")
    if key is None and ledger is None:
        console.print(f"by the key {found.public_key}: compare it with the one the owner publishes (--key)")
    if ledger is not None:
        console.print("the ledger has this entry, unchanged")


@ledger.command("backup")
def copied(
    path: Where,
    to: Annotated[Path, typer.Argument(help="Where the copy is to lie: a new file.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="It may take the place of an older copy.")] = False,
) -> None:
    """Copy a ledger, in use or not: as it stands now, checked, readable by its owner alone."""
    report = backup(_exists(path), to, mechanisms=tuple(MECHANISMS), overwrite=overwrite)
    console.print(f"copied: {report}")


@ledger.command("restore")
def restored(
    copy: Annotated[str, typer.Argument(help="The copy, as `sulq ledger backup` made it.")],
    path: Annotated[str, typer.Argument(help="The ledger's own place.")],
    anchor: Annotated[Path | None, typer.Option(help="The ledger's anchor, if it has one.")] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Entries may be lost that the copy does not hold.")] = False,
) -> None:
    """Check a copy and put it in its ledger's place; one that is older is refused, and what it lacks is said."""
    found = restore(_exists(copy), path, mechanisms=tuple(MECHANISMS), anchor=anchor, forget=forget)
    console.print(f"restored: {found.report}")
    if found.forgotten:
        console.print(f"forgotten: {escape(found.forgotten)}")
    _burnt(found.burnt)
    if found.kept is not None:
        console.print(f"the file that was there is now {escape(found.kept.name)}")


@ledger.command("reconcile")
def reconcile(
    path: Where,
    anchor: Annotated[Path, typer.Option(help="The ledger's anchor.")],
    lost: Annotated[bool, typer.Option("--lost", help="The anchor is gone for good: begin a new one here.")] = False,
) -> None:
    """Burn what an old copy of a ledger does not know was spent, so that it may be used again; an entry for ever."""
    burnt = burn_gap(_exists(path), anchor, mechanisms=tuple(MECHANISMS), lost=lost)
    if not burnt:
        console.print("nothing is burnt: the ledger is not behind")
    _burnt(burnt)
    with Working("verifying the ledger", screen()):
        report = verify(path, mechanisms=tuple(MECHANISMS))
    console.print(f"sound: {report}")


def _burnt(losses: dict[str, Totals]) -> None:
    for analyst, loss in losses.items():
        who = f" of {escape(analyst)}" if analyst else ""
        console.print(f"burnt: {loss.events} asks{who} that this copy does not hold")
