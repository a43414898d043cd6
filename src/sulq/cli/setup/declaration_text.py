"""The text of a new NAME.sulq.toml: every column of the schema, with blanks for what its owner must say."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sulq.api.owner import OfferedColumns
from sulq.cli.setup.config_lines import BLANK
from sulq.data_files import Files

FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "int": ("{ int = [?, ?] }", "whole numbers: the lowest and the highest"),
    "real": ("{ real = [?, ?] }", "numbers: the lowest and the highest"),
    "bool": ("{ bool = true }", "true or false"),
    "category": ("{ category = [?] }", 'one of a list: ["first", "second"]'),
    "date": ("{ date = [?, ?] }", 'days: the first and the last, as "2024-01-31"'),
    "timestamp": ("{ timestamp = [?, ?] }", 'moments in UTC: the first and the last, as "2024-01-31"'),
    "text": ("{ text = true }", "free text"),
}
"""Each kind of column: how it is declared, and what it holds."""

KINDS: Final = ", ".join(FORMS)
INTRODUCTION: Final = """\
# What may be asked of {data}, and whom an answer hides.
# Written by `sulq init` from the names and types of its columns; no value was read.
#
# Write what each ? stands for, and delete the lines of columns that nobody needs to ask about.
# Bounds and lists come from what a column means or from a code book, never from the data:
# the largest income in a file is somebody's. Everything here is public.
# Then: `sulq check {name}` says how the rows fit, `sulq prepare {name}` begins the ledger.
"""
UNIT: Final = """\
# Whom does an answer hide? `column` says whose row it is; of each person at most `rows` rows count.
# Where each row is a person of its own, delete the line."""
BUDGET: Final = """\
# How much may all answers together tell about one person? At epsilon 1 odds change by a factor of at most 2.7."""


@dataclass(frozen=True, slots=True)
class SetupAnswers:
    """What the owner said so far, as TOML; what is not said is left blank.

    `columns`: by table and column; "" leaves a column out.
    """

    person: str | None = None
    rows: str = BLANK
    neighbors: str = "add_remove"
    alone: bool = False  # each row is a person of its own
    budget: Mapping[str, str] = field(default_factory=lambda: {"epsilon": BLANK})
    columns: Mapping[tuple[str, str], str] = field(default_factory=dict)
    public: Sequence[str] = ()
    keys: Mapping[str, str] = field(default_factory=dict)


def declaration_text(tables: Sequence[OfferedColumns], out: Path, answers: SetupAnswers, guess: str | None) -> str:
    """The whole file; `guess`: the column that most likely says whose row it is."""
    shown = _shown(tables[0].data, out)
    name = (shown if isinstance(shown, str) else shown[0]) if "://" not in str(shown) else out.name
    lines = [INTRODUCTION.format(data=_plain(str(shown)), name=_plain(name)), "[dataset]"]
    alone = len(tables) == 1
    if alone:
        lines += [f"data = {_data(shown)}"] + ([f"table = {quoted(tables[0].name)}"] if _is_named(tables[0]) else [])
    lines += ["", *_unit(answers, guess), "", BUDGET]
    lines.append("budget = { " + ", ".join(f"{key} = {value}" for key, value in answers.budget.items()) + " }")
    for table in tables:
        section = "dataset" if alone else f"dataset.tables.{key_of(table.name)}"
        if not alone:
            lines += ["", f"[{section}]", f"data = {_data(_shown(table.data, out))}", *_role(table, answers)]
        lines += ["", f"[{section}.columns]", *_columns(table, answers)]
    return "\n".join(lines) + "\n"


def _unit(answers: SetupAnswers, guess: str | None) -> list[str]:
    if answers.alone:
        told = f"unit = {{ neighbors = {quoted(answers.neighbors)} }}"
        return ["# Each row is a person of its own.", told]
    column = BLANK if answers.person is None else quoted(answers.person)
    perhaps = f"  # column perhaps {quoted(guess)}" if answers.person is None and guess is not None else ""
    neighbors = f"neighbors = {quoted(answers.neighbors)}"
    return [UNIT, f"unit = {{ column = {column}, rows = {answers.rows}, {neighbors} }}{perhaps}"]


def _role(table: OfferedColumns, answers: SetupAnswers) -> list[str]:
    """How one of several tables hangs together with the others."""
    key = answers.keys.get(table.name)
    found = [f"key = {quoted(key)}"] if key else ["# key = ...       # the column that differs from row to row"]
    if table.name in answers.public:
        return [*found, "public = true"]
    return [
        *found,
        "# public = true   # rows that need no protection",
        "# person = ...    # the column that says whose row it is, where it is not the unit's",
        "# references = { COLUMN = TABLE }   # a column that names a row of another private table by its key",
    ]


def _columns(table: OfferedColumns, answers: SetupAnswers) -> list[str]:
    found = []
    for name, kind in table.kinds.items():
        told = answers.columns.get((table.name, name))
        if told:
            found.append(f"{key_of(name)} = {told}")
        elif told == "" or kind == "skip" or name == answers.person:
            why = "left out" if told == "" else "says whose row it is" if name == answers.person else "looks like an id"
            found.append(f"# {key_of(name)} = ...  # {why}: nobody can ask about it")
        elif kind == "text":
            found.append(
                f"# {key_of(name)} = {FORMS[kind][0]}  # free text: leave it out unless it must be asked about"
            )
        elif kind in FORMS:
            found.append(f"{key_of(name)} = {FORMS[kind][0]}  # {FORMS[kind][1]}")
        else:
            found.append(f"{key_of(name)} = {{ ? }}  # what does it hold? {KINDS}")
    return found


def key_of(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    """A text as TOML has it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(text: str) -> str:
    """A text within a comment, on one line."""
    return text if text.isprintable() else quoted(text)


def _is_named(table: OfferedColumns) -> bool:
    return table.inside or (isinstance(table.data, str) and "table=" not in table.data)


def _shown(data: Path | Files | str, out: Path) -> str | list[str]:
    """Where data lies, as the file that is written names it: relative to that."""
    if isinstance(data, str):
        return data
    told = [str(data.absolute())] if isinstance(data, Path) else list(data.told)
    near = [os.path.relpath(each, out.absolute().parent) for each in told]
    return near[0] if len(near) == 1 else near


def _data(shown: str | list[str]) -> str:
    return quoted(shown) if isinstance(shown, str) else "[" + ", ".join(map(quoted, shown)) + "]"
