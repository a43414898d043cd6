"""Commands made from signatures: an option for each field of a form, read as everywhere else."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from typer.core import TyperGroup

from sulq.answers.oracle import Progress
from sulq.cli.query import Dataset
from sulq.cli.show import console
from sulq.errors import QuestionError, SetupError
from sulq.forms.signature import Field, Form

DeltaOf = Annotated[str | None, typer.Option("--delta", help="With --epsilon: the delta that goes with it.")]
# Python names parameters with underscores and the command line with hyphens: both are understood.
SETTINGS: Final = {"token_normalize_func": lambda word: word.replace("_", "-")}


class ByName(TyperGroup):
    """Commands by their name, in whatever case it is typed."""

    noun: ClassVar[str] = "command"
    group: ClassVar[str] = ""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - the command line library's own classes
        """The command of that name, or a refusal that names those there are."""
        known = {name.casefold(): name for name in self.commands}
        if cmd_name.casefold() not in known:
            raise QuestionError(
                "bad-question",
                f"There is no {self.noun} {cmd_name[:80]!r}.",
                f"Name one of: {', '.join(self.commands)}; `sulq {self.group} --help` says what each does.",
            )
        return super().get_command(ctx, known[cmd_name.casefold()])


def command(asks: Form, options: Mapping[str, Any], run: Callable[[str, dict[str, Any]], None]) -> Callable[..., None]:
    """The command of a form: DATASET, its own options, and one for each field; `run` gets what was typed."""

    def call(dataset: str, **given: Any) -> None:  # noqa: ANN401 - as the signature below says
        run(dataset, given)

    every = dict(options) | {field.name: _option(field) for field in asks.fields}
    positional = inspect.Parameter("dataset", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Dataset)
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in every.items()
    ]
    call.__signature__ = inspect.Signature([positional, *named])  # type: ignore[attr-defined]
    call.__annotations__ = {"dataset": Dataset, **every}
    call.__name__ = asks.name
    call.__doc__ = "\n\n".join(part for part in (f"{asks.title}.", asks.words) if part)
    return call


def group(name: str, noun: str, words: str, commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """A group of such commands; `noun` is what a refusal of an unknown one calls them."""
    found = type("Named", (ByName,), {"noun": noun, "group": name})
    made = typer.Typer(add_completion=False, cls=found, no_args_is_help=True, help=words)
    for each, call in commands.items():
        made.command(each, context_settings=SETTINGS)(call)
    return made


def chosen(asks: Form, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were named; the others keep their defaults."""
    missing = [field.name for field in asks.fields if field.required and given[field.name] is None]
    if missing:
        option = f"--{missing[0].replace('_', '-')}"
        raise QuestionError("bad-parameter", f"{asks.name} needs {option}.", f"Name it: {option} ...")
    return {field.name: field.read(given[field.name]) for field in asks.fields if given[field.name] is not None}


def check_writable(out: Path | None, what: str, *, folder: bool = False) -> None:
    """Refuse a place where something could not be written before anything is paid for it."""
    if out is None:
        return
    there = next(above for above in (out.absolute(), *out.absolute().parents) if above.exists())
    fits = there.is_dir() if folder else not out.is_dir() and out.parent.is_dir()
    if not fits or not os.access(there, os.W_OK):
        raise SetupError("missing-file", f"The {what} cannot be written to {out}.")


@contextlib.contextmanager
def progress(name: str) -> Iterator[Progress | None]:
    """A bar on a terminal; nothing in a pipe."""
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


def _option(field: Field) -> Any:  # noqa: ANN401 - an annotation
    """A parameter as an option: read by its field, so that a wrong one is refused as everywhere."""
    usual = "" if field.required or field.default in (None, "") else f" (default {field.default})"
    said = field.help[:1].upper() + field.help[1:]
    return Annotated[
        str | None,
        typer.Option(
            f"--{field.name.replace('_', '-')}", metavar=_metavar(field), help=f"{said or field.takes}{usual}"
        ),
    ]


def _metavar(field: Field) -> str:
    words = {"whole": "N", "number": "X", "text": "TEXT", "column": "NAME", "flag": "true|false", "choice": ""}
    word = words[field.kind]
    if field.depth and field.kind == "text":
        word = "TEXT;TEXT"
    elif field.depth:
        word = ("A,B" if field.kind == "column" else f"{word},{word}") + (";B,C" if field.depth == 2 else "")
    return "|".join(one for one in (word, *field.choices) if one)
