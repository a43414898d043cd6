"""The `sulq` command: one module a command, errors as exit codes.

Exit codes: 0 answered, 2 bad question or set-up, 3 refused by budget or access,
1 the curator's own failure.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import warnings
from typing import Annotated, Final

import typer

from sulq.cli.commands import Commands
from sulq.errors import AccessDenied, BudgetExceeded, CuratorError, SetupWarning, SulqError

OBJECTS: Final = 50_000  # so many new ones between looks for garbage: loading modules makes many and drops few

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A database you may ask about everyone and learn about no one.",
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the versions in use and check the disk.")] = False,
) -> None:
    """Ask private data statistical questions, from the command line."""
    if version:
        from sulq.cli.show import show_versions

        show_versions()
        context.exit(0)


def exit_code(error: SulqError) -> int:
    """The exit code of an error, by who must act."""
    if isinstance(error, CuratorError):
        return 1
    return 3 if isinstance(error, (BudgetExceeded, AccessDenied)) else 2


def main() -> None:
    """Run a command; an error of ours is a message and a code, never a traceback."""
    gc.set_threshold(OBJECTS)
    warnings.showwarning = _warn
    try:
        app()
    except SulqError as error:
        from rich.console import Console  # a command that prints no table starts without it
        from rich.markup import escape

        text = escape(f"{error.message}\n{error.remedy}")
        Console(stderr=True, soft_wrap=True).print(f"[bold red]{error.code}[/]: {text}", highlight=False)
        sys.exit(exit_code(error))
    except SystemExit as ended:
        if told := _interrupted(ended):
            print(told, file=sys.stderr)
        if ended.code in (None, 0) and threading.active_count() == 1:
            leave()
        raise


def _interrupted(error: BaseException | None) -> str:
    """What a Ctrl-C said that a command ended by: what was charged. Nothing where it ended otherwise."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return "" if error is None else str(error)


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show a warning as commands show errors: what to do, and no line of code."""
    kind = "warning" if issubclass(category, SetupWarning) else category.__name__
    print(f"{kind}: {message}", file=sys.stderr)


def leave() -> None:
    """End the process as it is: to take every module apart would take as long as several questions.

    Files are closed by whoever opened them, and what waits for the end is done first.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - no public name runs them
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # nobody reads any more; the interpreter says so in its own way
    os._exit(0)
