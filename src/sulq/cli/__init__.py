"""The `sulq` command: one module a command, errors as exit codes.

Exit codes: 0 answered, 2 bad question or set-up, 3 refused by budget or access,
1 the curator's own failure.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from sulq.cli.analyst import analyst
from sulq.cli.budget import budget
from sulq.cli.demo import demo
from sulq.cli.explain import explain
from sulq.cli.learn import learn
from sulq.cli.ledger import ledger
from sulq.cli.prepare import prepare
from sulq.cli.query import query
from sulq.cli.release import release
from sulq.cli.serve import serve
from sulq.cli.show import show_versions
from sulq.errors import AccessDenied, BudgetExceeded, CuratorError, SulqError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A database you may ask about everyone and learn about no one.",
)
app.command()(demo)
app.command()(budget)
app.command()(prepare)
app.command()(query)
app.command()(explain)
app.command()(serve)
app.add_typer(learn, name="learn")
app.add_typer(release, name="release")
app.add_typer(ledger, name="ledger")
app.add_typer(analyst, name="analyst")


@app.command()
def audit(
    deep: Annotated[bool, typer.Option("--deep", help="The long one: many more draws, pairs and attacks.")] = False,
    case: Annotated[int | None, typer.Option(min=0, help="Make up the same data as the audit that printed it.")] = None,
) -> None:
    """Check this copy of sulq: samplers, exact costs, record-replay, attacks, ledger; exits 1 if a check fails."""
    from sulq.cli.audit import checked  # engines, samplers and the harness are loaded only now

    raise typer.Exit(0 if checked(deep=deep, case=case) else 1)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the versions in use and check the disk.")] = False,
) -> None:
    """Ask private data statistical questions, from the command line."""
    if version:
        show_versions()
        context.exit(0)


def exit_code(error: SulqError) -> int:
    """The exit code of an error, by who must act."""
    if isinstance(error, CuratorError):
        return 1
    return 3 if isinstance(error, (BudgetExceeded, AccessDenied)) else 2


def main() -> None:
    """Run a command; an error of ours is a message and a code, never a traceback."""
    try:
        app()
    except SulqError as error:
        text = escape(f"{error.message}\n{error.remedy}")
        Console(stderr=True, soft_wrap=True).print(f"[bold red]{error.code}[/]: {text}", highlight=False)
        sys.exit(exit_code(error))
