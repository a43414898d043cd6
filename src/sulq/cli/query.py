"""`sulq query`, `explain`, `plan`, `afford`, `heavy`: ask a dataset, and print answers with their error bars."""

from __future__ import annotations

import csv
import datetime
import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.markup import escape
from rich.table import Table

from sulq.cli.open import asked
from sulq.cli.show import console
from sulq.display.columns import text_rows
from sulq.display.tables import not_shown
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation

MAX_ROWS_PRINTED: Final = 1_000  # as a table: laying out more takes longer than asking
Dataset = Annotated[str, typer.Argument(help="A data file with its NAME.sulq.toml, a name in sulq.toml, or a URL.")]
Text = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT, or EXPLAIN SELECT.")]
EpsilonOf = Annotated[str | None, typer.Option("--epsilon", help="Pay so much epsilon; with --delta, of both.")]
DeltaOf = Annotated[
    str | None, typer.Option("--delta", help="With --epsilon or --at-most: the delta that goes with it.")
]
RhoOf = Annotated[str | None, typer.Option("--rho", help="Pay so much rho.")]
WithinOf = Annotated[
    list[str] | None, typer.Option("--within", help="Be within X, or COLUMN=X (may be repeated); the price follows.")
]
BetaOf = Annotated[float, typer.Option("--beta", help="With --within: except with this probability.")]
AtMost = Annotated[str | None, typer.Option("--at-most", help="With --within: pay no more epsilon than this.")]
OtherOf = Annotated[
    str | None, typer.Option("--other", metavar="LABEL", help="Add a row for all groups of too few people together.")
]
LawOf = Annotated[
    Literal["laplace", "gaussian"] | None,
    typer.Option("--law", help="The noise, where --epsilon with --delta leaves that open; by default the better one."),
]
BoundsOf = Annotated[
    Literal["auto"] | None,
    typer.Option("--bounds", help="auto: first search, from the same price, for where the values of sums lie."),
]
IntervalOf = Annotated[
    bool,
    typer.Option("--interval/--no-interval", help="Buy intervals of chosen quantiles; without, they are nearer."),
]
TableOf = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="Of several tables, the one that is meant.")
]
ViewOf = Annotated[
    str | None,
    typer.Option("--view", metavar="SQL", help="In place of a table, a SELECT of rows: a join, for example."),
]
SamplingOf = Annotated[
    bool, typer.Option("--sampling", help="Intervals count the sampling of a larger population beside the noise.")
]
ConfigOf = Annotated[Path | None, typer.Option("--config", help="The sulq.toml to read.")]

FormatOf = Annotated[Literal["table", "csv", "json"], typer.Option("--format", help="How answers are printed.")]


def query(
    dataset: Dataset,
    sql: Text,
    *,
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    within: WithinOf = None,
    beta: BetaOf = 0.05,
    at_most: AtMost = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="New noise at full price instead of a stored answer.")] = False,
    other: OtherOf = None,
    law: LawOf = None,
    bounds: BoundsOf = None,
    interval: IntervalOf = True,
    sampling: SamplingOf = False,
    format: FormatOf = "table",  # noqa: A002 - the option is called so
    config: ConfigOf = None,
) -> None:
    """Ask in SQL. Every cell has an error bar; what it cost is in the ledger before a row is read."""
    with asked(dataset, config) as db:
        price = price_of(epsilon, rho, delta, within, at_most)
        answer = db.sql(sql, **price, beta=beta, fresh=fresh, other=other, law=law, bounds=bounds, interval=interval)
        if isinstance(answer, Explanation):
            console.print(str(answer), markup=False)
        else:
            PRINTED[format](answer.with_sampling() if sampling else answer)


def explain(
    dataset: Dataset,
    sql: Text,
    *,
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    within: WithinOf = None,
    beta: BetaOf = 0.05,
    at_most: AtMost = None,
    other: OtherOf = None,
    law: LawOf = None,
    bounds: BoundsOf = None,
    interval: IntervalOf = True,
    config: ConfigOf = None,
) -> None:
    """Explain a query: its questions, sensitivity and why, noise, expected accuracy, and what it would leave."""
    with asked(dataset, config) as db:
        price = price_of(epsilon, rho, delta, within, at_most)
        found = db.explain(sql, **price, beta=beta, other=other, law=law, bounds=bounds, interval=interval)
        console.print(str(found), markup=False)


def afford(
    dataset: Dataset,
    sql: Annotated[
        list[str] | None, typer.Argument(metavar="[SQL]...", help="Queries, each at the price named.")
    ] = None,
    *,
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    times: Annotated[int, typer.Option("--times", min=1, max=1000, help="How often all of them are asked.")] = 1,
    law: LawOf = None,
    bounds: BoundsOf = None,
    config: ConfigOf = None,
) -> None:
    """Foretell what a run of asks would leave of the budget, and which would be refused; nothing is spent."""
    with asked(dataset, config) as db:
        spend = spend_of(epsilon, rho, delta)
        asks: list[object] = [*(sql or ()), *(() if sql or spend is None else (spend,))]
        console.print(repr(db.afford(asks * times, spend=spend, law=law, bounds=bounds)), markup=False)


def plan(
    dataset: Dataset,
    sql: Annotated[list[str], typer.Argument(metavar="SQL...", help="Queries that share the price named.")],
    *,
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    weights: Annotated[
        str | None, typer.Option("--weights", metavar="W,W,...", help="How much each query's error counts.")
    ] = None,
    beta: Annotated[float, typer.Option("--beta", help="Errors are foreseen but for this probability.")] = 0.05,
    law: LawOf = None,
    interval: IntervalOf = True,
    ask: Annotated[bool, typer.Option("--ask", help="Pay, and print the answers; else nothing is spent.")] = False,
    together: Annotated[
        bool | None,
        typer.Option("--together/--apart", help="With --ask: at one debit, or one by one; default: as planned."),
    ] = None,
    format: FormatOf = "table",  # noqa: A002 - the option is called so
    config: ConfigOf = None,
) -> None:
    """Divide a price over several queries so that their mean relative error is least, and ask them with --ask.

    Answers are printed one after another: as csv with an empty line between two of them, as json each on its line.
    """
    with asked(dataset, config) as db:
        if (spend := spend_of(epsilon, rho, delta)) is None:
            raise QuestionError("spend-missing", "Name the price that is divided: --epsilon, or --rho.")
        counted = (
            None if weights is None else [_number(word, "--weights", "bad-question") for word in weights.split(",")]
        )
        found = db.plan(sql, spend=spend, beta=beta, law=law, weights=counted, interval=interval)
        if not ask:
            console.print(repr(found), markup=False)
        for place, answer in enumerate(found.ask(together=together) if ask else ()):
            if place and format == "csv":
                print()
            PRINTED[format](answer)


def heavy(
    dataset: Dataset,
    *,
    table: Annotated[str, typer.Option("--table", help="Of several tables, the one that is meant.")] = "",
    epsilon: EpsilonOf = None,
    rho: RhoOf = None,
    delta: DeltaOf = None,
    config: ConfigOf = None,
) -> None:
    """Buy, once, how many persons have more rows than are kept; their share stands beside every later answer."""
    with asked(dataset, config) as db:
        console.print(repr(db.heavy_persons(table=table, spend=spend_of(epsilon, rho, delta))), markup=False)


def price_of(
    epsilon: str | None, rho: str | None, delta: str | None, within: list[str] | None, at_most: str | None
) -> dict[str, Any]:
    """The price that options name: a spend, or the accuracy wished for and the most it may cost."""
    return {
        "spend": spend_of(epsilon, rho, None if at_most else delta),
        "within": within_of(within),
        "at_most": spend_of(at_most, None, delta) if at_most else None,
    }


def spend_of(epsilon: str | None, rho: str | None, delta: str | None) -> Loss | None:
    """The spend that options name: epsilon, epsilon and delta, or rho."""
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise QuestionError("bad-question", "Name --rho alone, or --epsilon with or without --delta.")
        return Rho(_number(rho, "--rho"))
    if epsilon is None:
        if delta is not None:
            raise QuestionError("bad-question", "--delta goes with --epsilon.")
        return None
    paid = _number(epsilon, "--epsilon")
    return Epsilon(paid) if delta is None else EpsilonDelta(paid, _number(delta, "--delta"))


def within_of(words: list[str] | None) -> float | dict[str, float] | None:
    """A width, or one for each column named."""
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        return _number(words[0], "--within")
    pairs = [word.rpartition("=") for word in words]
    if not all(name for name, _, _ in pairs):
        raise QuestionError("bad-question", "Give --within one number, or COLUMN=X for each column.")
    return {name: _number(width, "--within") for name, _, width in pairs}


def _number(text: str, option: str, code: str = "bad-loss") -> float:
    try:
        return float(text)
    except ValueError:
        raise QuestionError(code, f"{option} needs a number, not {text[:40]!r}.") from None


def _table(answer: SqlAnswer) -> None:
    table = Table(*(escape(name) for name in answer.columns))
    for line in text_rows(answer.shown(), MAX_ROWS_PRINTED):
        table.add_row(*map(escape, line))
    console.print(table)
    more = answer.table.size - MAX_ROWS_PRINTED
    if more > 0:
        whole = "asked again with --format csv, and without --fresh, the same answer is given whole, free"
        console.print(f"{not_shown(more)}; {whole}", markup=False)
    for text in repr(answer).splitlines()[-1 - len(answer.notes) :]:
        console.print(text, markup=False)


def _csv(answer: SqlAnswer) -> None:
    columns = answer.to_dict(0.95)
    writer = csv.writer(sys.stdout)
    writer.writerow([_plain_text(name) for name in columns])
    for row in zip(*columns.values(), strict=True):
        writer.writerow([_plain_text(cell) for cell in row])
    for note in answer.notes:  # beside the rows, which a program reads
        print(note, file=sys.stderr)


def _plain_text(cell: object) -> object:
    """A cell no spreadsheet takes for a formula (T82); numbers stay as they are."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _json(answer: SqlAnswer) -> None:
    columns = answer.to_dict(0.95)
    found = {
        "columns": list(columns),
        "rows": [list(row) for row in zip(*columns.values(), strict=True)],
        "spent": str(answer.spent),
        "left": str(answer.remaining),
        "protects": str(answer.unit),
        "guarantee": answer.guarantee,
        "reused": answer.reused,
        "notes": list(answer.notes),
        "bounds": answer.bounds,
    }
    print(json.dumps(found, default=moment, ensure_ascii=False))


PRINTED: Final = {"table": _table, "csv": _csv, "json": _json}


def moment(value: object) -> str:
    """A day or a moment as JSON has it."""
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return str(value)
