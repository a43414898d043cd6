"""`sulq init`: the declarations of new data, from its schema alone, with questions for what only its owner knows."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from sulq.addresses import is_address, tells_a_password
from sulq.api.owner import OfferedColumns, offered_tables, person_of
from sulq.cli.config import DATA_SUFFIXES, SUFFIX, read
from sulq.cli.setup.config_lines import BLANK
from sulq.cli.setup.declaration_text import FORMS, KINDS, SetupAnswers, declaration_text, quoted
from sulq.cli.show import console
from sulq.errors import SetupError, SulqError

ROW: Final = "row"
NEIGHBORS: Final = ("add_remove", "replace_one", "zero_out")
_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def init(
    files: Annotated[
        list[str], typer.Argument(help="A data file, several, a folder, or a postgresql:// address without a password.")
    ],
    *,
    person: Annotated[
        str | None, typer.Option(help=f"The column that says whose row it is; {ROW!r}: each row is a person.")
    ] = None,
    rows: Annotated[str | None, typer.Option(help='How many rows of a person count, or "auto".')] = None,
    neighbors: Annotated[str, typer.Option(help=f"What must not be noticed: {', '.join(NEIGHBORS)}.")] = NEIGHBORS[0],
    epsilon: Annotated[str | None, typer.Option(help="The budget: what all answers together may tell.")] = None,
    delta: Annotated[str | None, typer.Option(help="With --epsilon: the probability with which it may fail.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help='One column: "age = int 0, 120", "city = category Haifa, Lod", "note = skip".'),
    ] = None,
    public: Annotated[list[str] | None, typer.Option(help="A table whose rows need no protection.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="A table's unique column, as TABLE=COLUMN.")] = None,
    out: Annotated[Path | None, typer.Option(help=f"Where to write; default: NAME{SUFFIX} beside the data.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="Ask on a terminal for what is not said.")] = True,
) -> None:
    """Write NAME.sulq.toml for new data, from the names and types of its columns; no value is read.

    On a terminal it asks for what only you know: whose rows these are, bounds, lists. What is left open stands as ? in
    the file, to be filled in there.
    """
    place = _place(files[0]) if out is None else out
    if place.exists() and not force:
        raise SetupError(
            "bad-config", f"{place} is there already.", "Edit it, name another with --out, or say --force."
        )
    tables = [table for file in files for table in _offered(file)]
    _differ([table.name for table in tables])
    answers = SetupAnswers(
        person=None if person == ROW else person,
        rows=BLANK if rows is None else _rows(rows),
        neighbors=_one_of(neighbors, NEIGHBORS, "--neighbors"),
        alone=person == ROW,
        budget={"epsilon": BLANK if epsilon is None else _number(epsilon)}
        | ({} if delta is None else {"delta": _number(delta)}),
        columns=_told(column or (), tables),
        public=public or (),
        keys=dict(_pair(item, "--key TABLE=COLUMN") for item in key or ()),
    )
    _known([*answers.public, *answers.keys], [table.name for table in tables], "table")
    every = list(dict.fromkeys(name for table in tables for name, _ in table.columns))
    _known([] if answers.person is None else [answers.person], every, "column")
    guess = person_of(every)
    if ask and _is_terminal():
        answers = _asked(answers, tables, every, guess)
    place.write_text(declaration_text(tables, place, answers, guess), encoding="utf-8")
    _report(place, files[0])


def _is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and console.is_terminal


def _report(place: Path, file: str) -> None:
    """Say what was written, and what is to be done next."""
    console.print(f"Wrote {escape(str(place))}.")
    name = escape(file if not is_address(file) else str(place))
    try:
        read(place)
    except SulqError as error:
        console.print(escape(f"{error.message}\n{error.remedy}"))
    console.print(f"Next: sulq check {name} (how the rows fit), then sulq prepare {name}.", markup=False)


def _offered(file: str) -> list[OfferedColumns]:
    if is_address(file) and tells_a_password(file):
        raise SetupError("bad-config", "An address in a configuration must not hold a password.", "Use PGPASSWORD.")
    found = offered_tables(file)
    if not found:
        raise SetupError("unreadable-data", f"{file} holds no table.")
    return found


def _place(file: str) -> Path:
    """Beside the data, under its name; for a table in a database in this folder."""
    if is_address(file):
        return Path(re.sub(r"\W+", "_", file.partition("table=")[2].partition("&")[0]) + SUFFIX)
    path = Path(file)
    ending = next((ending for ending in DATA_SUFFIXES if path.name.lower().endswith(ending)), "")
    return path.with_name(path.name.removesuffix(path.name[len(path.name) - len(ending) :] if ending else "") + SUFFIX)


def _differ(names: Sequence[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise SetupError("bad-declaration", f"Two tables are called {twice[0]!r}.", "Rename one file.")


def _known(told: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in told:
        if name not in known:
            raise SetupError("missing-column" if what == "column" else "bad-declaration",
                             f"The data has no {what} {name[:80]!r} (it has: {', '.join(known[:50])}).")  # fmt: skip


def _told(given: Sequence[str], tables: Sequence[OfferedColumns]) -> dict[tuple[str, str], str]:
    """Columns by the options that declare them, in every table that has one of that name."""
    found = {}
    for item in given:
        name, told = _pair(item, '--column "NAME = KIND VALUES"')
        owners = [table for table in tables if name in table.kinds]
        _known([name], [each for table in tables for each in table.kinds], "column")
        for table in owners:
            found[table.name, name] = column_entry(told, table.kinds[name])
    return found


def column_entry(told: str, kind: str) -> str:
    """A column's declaration in TOML from short words: "int 0, 120", "0, 120", "category a, b", "skip" ("")."""
    first, _, rest = told.strip().partition(" ")
    if first in ("skip", *FORMS):
        kind, values = first, rest
    else:
        values = told
    if kind == "skip":
        return ""
    if kind not in FORMS:
        raise SetupError("bad-config", f"{told[:80]!r} begins with no kind of column.", f"Say one of: skip, {KINDS}.")
    if kind in ("bool", "text"):
        return f"{{ {kind} = true }}"
    parts = [part.strip() for part in values.split(",") if part.strip()]
    if kind != "category" and len(parts) != 2:
        raise SetupError("bad-config", f"A column of kind {kind} has two ends: {kind} LOWEST, HIGHEST.")
    if not parts:
        raise SetupError("bad-config", "A category has values: category first, second.")
    shown = [_number(part) for part in parts] if kind in ("int", "real") else [quoted(part) for part in parts]
    return f"{{ {kind} = [{', '.join(shown)}] }}"


def _number(text: str) -> str:
    if not _NUMBER.fullmatch(text.strip()):
        raise SetupError("bad-config", f"{text[:40]!r} is no number.")
    return text.strip().lstrip("+")


def _rows(text: str) -> str:
    if text == "auto":
        return quoted(text)
    if not text.isdecimal() or int(text) < 1:
        raise SetupError("bad-config", "rows is a whole number from 1, or auto.")
    return text


def _one_of(text: str, known: Sequence[str], what: str) -> str:
    if text not in known:
        raise SetupError("bad-config", f"{what} is one of: {', '.join(known)}.")
    return text


def _pair(text: str, what: str) -> tuple[str, str]:
    name, sign, told = text.partition("=")
    if not sign or not name.strip():
        raise SetupError("bad-config", f"{text[:80]!r} is not of the form {what}.")
    return name.strip(), told.strip()


def _asked(
    answers: SetupAnswers, tables: Sequence[OfferedColumns], every: Sequence[str], guess: str | None
) -> SetupAnswers:
    """Ask on the terminal for what was not said; an empty answer leaves it open."""
    console.print("Nothing of the data is looked at but its columns. Enter alone leaves a question open.")
    if answers.person is None and not answers.alone:
        told = _answer(
            f"Whose is a row? A column, or {ROW!r} where each row is a person", guess or "", _column_of(every)
        )
        answers = replace(answers, person=told if told not in ("", ROW) else None, alone=told == ROW)
    if answers.rows == BLANK and not answers.alone:
        answers = replace(
            answers, rows=_answer("How many rows of a person count, at most (or auto)", "", _rows) or BLANK
        )
    if answers.budget.get("epsilon") == BLANK:
        budget = _answer("Budget: epsilon of all answers together", "1", _number) or BLANK
        answers = replace(answers, budget={**answers.budget, "epsilon": budget})
    columns = dict(answers.columns)
    console.print(f"Each column: skip, or a kind and its bounds or values. Kinds: {KINDS}.", markup=False)
    for table in tables:
        for name, kind in table.kinds.items():
            if (table.name, name) not in columns and name != answers.person:
                entry = _column(table, name, kind)
                columns |= {} if entry is None else {(table.name, name): entry}
    return replace(answers, columns=columns)


def _column(table: OfferedColumns, name: str, kind: str) -> str | None:
    """What the owner says of a column; None where that stays open."""
    perhaps = {"skip": "skip", "": ""}.get(kind, f"{kind}, by its {'name' if _untyped(table) else 'type'}")
    shown = f"{table.name}.{quoted(name)[1:-1]}" + (f" ({perhaps})" if perhaps else "")
    told = _answer(shown, "", lambda text: column_entry(text, kind) or "skip")
    return "" if told == "skip" else told or None


def _untyped(table: OfferedColumns) -> bool:
    return all(kind == "text" for _, kind in table.columns)


def _column_of(every: Sequence[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        _known([] if text == ROW else [text], every, "column")
        return text

    return check


def _answer(question: str, usual: str, parse: Callable[[str], str]) -> str:
    """An answer that can be read, or ""."""
    while True:
        text = typer.prompt(question, default=usual, show_default=bool(usual)).strip()
        if not text:
            return ""
        try:
            return parse(text)
        except SulqError as error:
            console.print(escape(f"{error.message} {error.remedy}"))
