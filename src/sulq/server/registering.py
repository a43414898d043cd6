"""The calls by which an owner brings data in: look at a file's columns, then register it with its public facts.

Files lie under the owner's `data_root` and nowhere else. What is looked at are
names and kinds of columns; bounds and categories are asked for, never read off
the rows (T17).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Protocol

from sulq.connect import SUFFIXES
from sulq.errors import QuestionError, SetupError
from sulq.server.declared import declare
from sulq.server.frames import Frame
from sulq.server.request import Request
from sulq.server.settings import Declared
from sulq.terms import wire
from sulq.terms.domain import COLUMNS
from sulq.terms.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
FIELDS: Final = ("name", "file", "table", "columns", "unit", "budget", "size", "synthetic")


class Registrar(Protocol):
    """What registering needs of the clerk."""

    @property
    def data_root(self) -> Path | None:
        """Where data files may lie."""
        ...

    def look(self, path: Path) -> Frame:
        """Names and kinds of a file's columns, by a process of its own."""
        ...

    def hold(self, declared: Declared) -> bool:
        """Write a new dataset down and open it; whether it is ready."""
        ...

    def withdraw(self, name: str) -> None:
        """Take away a dataset that was registered by a call."""
        ...


def look(office: Registrar, request: Request) -> Frame:
    """What columns a file has; with no file named, which files there are."""
    request.only("file")
    root = _root(office)
    name = request.optional("file")
    if name is None:
        files = (path for path in root.rglob("*") if path.is_file() and path.name.lower().endswith(SUFFIXES))
        return {"files": sorted(str(path.relative_to(root)) for path in files)}
    return office.look(place(root, name))


def register(office: Registrar, request: Request) -> Frame:
    """A new dataset, with everything public about it said by its owner."""
    request.only(*FIELDS)
    name = request.text("name")
    if not NAME.fullmatch(name):
        raise QuestionError("bad-request", "A dataset's name is letters, digits, _ and -, a letter first.")
    path = place(_root(office), request.text("file"))
    size = request.body.get("size")
    declared = declare(
        name,
        path,
        _columns(request),
        budget=_budget(request),
        unit=_unit(request),
        table=request.optional("table"),
        size=None if size is None else request.whole("size", 0, 2**40),
        synthetic=request.truth("synthetic"),
    )
    return {"name": name, "ready": office.hold(declared)}


def withdraw(office: Registrar, request: Request) -> Frame:
    """Take a dataset away that was registered by a call; its ledger stays, and with it what was spent."""
    request.only()
    office.withdraw(request.held.name)
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


def _root(office: Registrar) -> Path:
    if office.data_root is None:
        raise SetupError("missing-file", "This server has no data_root.", "Set data_root in [server].")
    return office.data_root


def _columns(request: Request) -> dict[str, object]:
    tree = request.body.get("columns")
    if not isinstance(tree, dict) or not tree:
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
