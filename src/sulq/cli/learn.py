"""`sulq learn NAME DATASET`: a command for each learner, made from its signature."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from typer.core import TyperGroup

from sulq.cli.open import asked
from sulq.cli.query import ConfigOf, Dataset, EpsilonOf, RhoOf, spend_of
from sulq.cli.show import console
from sulq.errors import QuestionError, SetupError
from sulq.learn import LEARNERS
from sulq.learn.base import Learner
from sulq.learn.form import Field, Form, form
from sulq.learn.purse import Progress
from sulq.learn.shown import text

XOf = Annotated[str | None, typer.Option("--x", metavar="A,B,C", help="The columns to learn from.")]
YOf = Annotated[str | None, typer.Option("--y", metavar="LABEL", help="The column to predict.")]
DeltaOf = Annotated[str | None, typer.Option("--delta", help="With --epsilon: the delta that goes with it.")]
OutOf = Annotated[Path | None, typer.Option("--out", help="Write the model here, as JSON for sulq.learn.load.")]


class ByName(TyperGroup):
    """Learners by their name, in whatever case it is typed."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - the command line library's own classes
        """The command of a learner, or a refusal that names those there are."""
        known = {name.casefold(): name for name in self.commands}
        if cmd_name.casefold() not in known:
            raise QuestionError(
                "bad-question",
                f"There is no learner {cmd_name[:80]!r}.",
                f"Name one of: {', '.join(self.commands)}; `sulq learn --help` says what each does.",
            )
        return super().get_command(ctx, known[cmd_name.casefold()])


def command(learner: type[Learner]) -> Callable[..., None]:
    """The command of a learner: DATASET, columns, spend, and an option for each parameter of its form."""
    asks = form(learner)

    def call(dataset: str, **given: Any) -> None:  # noqa: ANN401 - as the signature below says
        _run(learner, dataset, given)

    options: dict[str, Any] = {"x": XOf, "y": YOf, "epsilon": EpsilonOf, "delta": DeltaOf, "rho": RhoOf, "out": OutOf}
    if not asks.supervised:
        del options["y"]
    options |= {field.name: _option(field) for field in asks.fields} | {"config": ConfigOf}
    positional = inspect.Parameter("dataset", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Dataset)
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in options.items()
    ]
    call.__signature__ = inspect.Signature([positional, *named])  # type: ignore[attr-defined]
    call.__annotations__ = {"dataset": Dataset, **options}
    call.__name__ = asks.name
    call.__doc__ = "\n\n".join(part for part in (f"{asks.title}.", asks.words) if part)
    return call


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
    words = {"whole": "N", "number": "X", "text": "TEXT", "flag": "true|false", "choice": ""}
    return "|".join(word for word in (words[field.kind], *field.choices) if word)


def _run(learner: type[Learner], dataset: str, given: dict[str, Any]) -> None:
    asks = form(learner)
    spend = spend_of(given["epsilon"], given["rho"], given["delta"])
    model = learner(**_chosen(asks, given))
    names = [name.strip() for name in (given["x"] or "").split(",") if name.strip()]
    if not names:
        raise QuestionError("bad-question", f"{asks.name} needs columns to learn from.", "Name them: --x age,income.")
    if asks.supervised and not given["y"]:
        raise QuestionError("bad-question", f"{asks.name} needs a column to predict.", "Name it: --y smoker.")
    _writable(given["out"])
    with asked(dataset, given["config"]) as db, _progress(asks.name) as tell:
        model.fit(db[names], db[given["y"]] if asks.supervised else None, spend=spend, progress=tell)
        left = db.remaining
    console.print(text(model), markup=False)
    guarantee = "" if model.guarantee_ == "dp" else f"; guarantee {model.guarantee_}"
    console.print(f"spent {model.spent_}, left {left}; protects {model.unit_}{guarantee}", markup=False)
    if given["out"] is not None:
        model.save(given["out"])
        console.print(f"The model is in {given['out']}: sulq.learn.load({str(given['out'])!r})", markup=False)


def _chosen(asks: Form, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters that were named; the others keep their defaults."""
    missing = [field.name for field in asks.fields if field.required and given[field.name] is None]
    if missing:
        option = f"--{missing[0].replace('_', '-')}"
        raise QuestionError("bad-parameter", f"{asks.name} needs {option}.", f"Name it: {option} ...")
    return {field.name: field.read(given[field.name]) for field in asks.fields if given[field.name] is not None}


def _writable(out: Path | None) -> None:
    """Refuse a place where the model could not be written before anything is paid for it."""
    if out is not None and (out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK)):
        raise SetupError("missing-file", f"The model cannot be written to {out}.")


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Progress | None]:
    """A bar on a terminal; nothing in a pipe."""
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


learn = typer.Typer(cls=ByName, no_args_is_help=True, help="Learn a model from private columns, at one price.")
# Python names parameters with underscores and the command line with hyphens: both are understood.
_SETTINGS: Final = {"token_normalize_func": lambda word: word.replace("_", "-")}
for each in LEARNERS:
    learn.command(each.__name__, context_settings=_SETTINGS)(command(each))
