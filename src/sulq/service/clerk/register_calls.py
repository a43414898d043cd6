"""The calls by which an owner brings data in: look at a file's columns, then register it with its public facts.

Files lie under the owner's `data_root` and nowhere else. What is looked at are
names and kinds of columns; bounds and categories are asked for, never read off
the rows (T17).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from sulq.answers import wire
from sulq.api.locations import SUFFIXES
from sulq.errors import QuestionError, SetupError
from sulq.language.domain import COLUMNS
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.service.clerk.dataset_manager import DatasetManager
from sulq.service.clerk.declaration import declare
from sulq.service.clerk.request import Request
from sulq.service.ipc import Frame
from sulq.service.settings import DatasetSettings

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
ALONE: Final = ("file", "table", "columns", "size", "graph")  # what a dataset of one table says of it
FIELDS: Final = ("name", *ALONE, "tables", "unit", "budget", "synthetic")
PART: Final = ("file", "columns", "size", "key", "public", "person", "references")  # what each of several tables says
MAX_ROWS: Final = 2**40  # rows


def look(manager: DatasetManager, request: Request) -> Frame:
    """What columns a file has; with no file named, which files there are."""
    request.only("file")
    root = _root(manager)
    name = request.optional("file")
    if name is None:
        files = (path for path in root.rglob("*") if path.is_file() and path.name.lower().endswith(SUFFIXES))
        return {"files": sorted(str(path.relative_to(root)) for path in files)}
    return manager.look(place(root, name))


def register(manager: DatasetManager, request: Request) -> Frame:
    """A new dataset, with everything public about it said by its owner."""
    request.only(*FIELDS)
    name = request.text("name")
    if not NAME.fullmatch(name):
        raise QuestionError("bad-request", "A dataset's name is letters, digits, _ and -, a letter first.")
    declare_tables = _alone if request.body.get("tables") is None else _several
    made = declare_tables(manager, request, name)
    return {"name": name, "ready": manager.hold(made)}


def _alone(manager: DatasetManager, request: Request, name: str) -> DatasetSettings:
    """A dataset of one table."""
    return declare(
        name,
        place(_root(manager), request.text("file")),
        _columns(request),
        budget=_budget(request),
        unit=_unit(request),
        table=request.optional("table"),
        size=_size(request),
        synthetic=request.truth("synthetic"),
        graph=_graph(request),
    )


def _graph(request: Request) -> tuple[str, ...] | None:
    """The columns by which rows are edges. An owner's functions are never named over HTTP (SR5)."""
    told = request.body.get("graph")
    if told is None:
        return None
    if not isinstance(told, list) or not all(isinstance(name, str) for name in told):
        raise QuestionError("bad-request", "graph names two columns, or three.")
    return tuple(told)


def _several(manager: DatasetManager, request: Request, name: str) -> DatasetSettings:
    """A dataset of several tables, each with its file, columns, and how it hangs together with the others."""
    for alone in ALONE:
        if request.body.get(alone) is not None:
            raise QuestionError("bad-request", f"{alone} belongs to each of the tables.")
    told = request.tree("tables")
    parts = {table: replace(request, body=cast("Mapping[str, object]", told[table])) for table in told}
    for table, part in parts.items():
        if not isinstance(part.body, dict):
            raise QuestionError("bad-request", f"tables says of {table[:40]!r} its file and columns.")
        part.only(*PART)
    keys = {table: part.optional("key") for table, part in parts.items()}
    persons = {table: part.optional("person") for table, part in parts.items()}
    sizes = {table: _size(part) for table, part in parts.items()}
    return declare(
        name,
        {table: place(_root(manager), part.text("file")) for table, part in parts.items()},
        {table: _columns(part) for table, part in parts.items()},
        budget=_budget(request),
        unit=_unit(request),
        size={table: size for table, size in sizes.items() if size is not None},
        synthetic=request.truth("synthetic"),
        keys={table: key for table, key in keys.items() if key is not None},
        public=tuple(table for table, part in parts.items() if part.truth("public")),
        persons={table: person for table, person in persons.items() if person is not None},
        references={table: found for table, part in parts.items() if (found := _references(part))},
    )


def withdraw(manager: DatasetManager, request: Request) -> Frame:
    """Take a dataset away that was registered by a call; its ledger stays, and with it what was spent."""
    request.only()
    manager.withdraw(request.held.name)
    return {}


def place(root: Path, name: str) -> Path:
    """A file under the root; whatever leads out of it is not there (T70)."""
    try:
        path = (root / name).resolve()
        inside = path.is_relative_to(root.resolve()) and path.is_file()
    except (OSError, ValueError):
        inside = False
    if not inside or not path.name.lower().endswith(SUFFIXES):
        raise SetupError("missing-file", "There is no such data file.", "Name a file below the server's data_root.")
    return path


def _root(manager: DatasetManager) -> Path:
    if manager.data_root is None:
        raise SetupError("missing-file", "This server has no data_root.", "Set data_root in [server].")
    return manager.data_root


def _size(request: Request) -> int | None:
    return None if request.body.get("size") is None else request.whole("size", 0, MAX_ROWS)


def _references(request: Request) -> dict[str, str]:
    tree = {} if request.body.get("references") is None else request.tree("references")
    if not all(isinstance(table, str) for table in tree.values()):
        raise QuestionError("bad-request", "references names a table for each column.")
    return cast("dict[str, str]", tree)


def _columns(request: Request) -> dict[str, object]:
    tree = request.tree("columns")
    if not tree:
        raise QuestionError("bad-request", "columns declares each column.")
    found = {name: wire.from_json(column) for name, column in tree.items()}
    if not all(isinstance(column, COLUMNS) for column in found.values()):
        raise QuestionError("bad-request", "columns declares each column by its kind.")
    return found


def _unit(request: Request) -> Unit:
    tree = request.body.get("unit")
    unit = Unit() if tree is None else wire.from_json(tree)
    if not isinstance(unit, Unit):
        raise QuestionError("bad-request", "unit says whom an answer hides.")
    return unit


def _budget(request: Request) -> Budget:
    budget = wire.from_json(request.body.get("budget"))
    if not isinstance(budget, (Epsilon, EpsilonDelta, Rho, SubLinear)):
        raise QuestionError("bad-request", "budget says what may be lost in total.")
    return budget
