"""Every call the clerk answers, in one table: who may make it, whether it is about a dataset, what it does.

The clerk believes no word of the web: each call carries the token itself, which is hashed and looked up in the access
store here. So a web process that was broken into can do no more than the tokens it is shown, and whoever reads the
store is not let in by it (T80). A dataset that does not exist and one of somebody else's are answered alike.

Registering data is among them. Files lie under the owner's `data_root` and nowhere else; names and kinds of columns
are looked at, bounds and categories are asked for, never read off the rows (T17).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, cast

from sulq.answers import wire
from sulq.api.declarations import SUFFIXES
from sulq.errors import AccessDenied, CuratorError, QuestionError, SetupError, SulqError
from sulq.language.domain import COLUMNS
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.service.clerk import request as requests
from sulq.service.clerk.access import Access, Principal, hashed
from sulq.service.clerk.dataset_manager import DatasetManager
from sulq.service.clerk.registration import declare
from sulq.service.clerk.request import Request
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import Frame, refusal
from sulq.service.logs import Counts
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


ANYONE: Final = frozenset({"owner", "analyst", "auditor"})
ASKERS: Final = frozenset({"owner", "analyst"})
READERS: Final = frozenset({"owner", "auditor"})
OWNER: Final = frozenset({"owner"})
NOBODY: Final[frozenset[str]] = frozenset()  # no token is asked for
MAX_TOKEN_CHARACTERS: Final = 200  # of a token

_log = logging.getLogger(__name__)


class CallableClerk(Protocol):
    """What the calls need of the clerk."""

    access: Access
    counts: Counts
    datasets: Mapping[str, OpenDataset]

    @property
    def manager(self) -> DatasetManager:
        """Opens datasets; refused where this clerk takes on none."""
        ...

    def health(self) -> Frame:
        """What anyone may know: whether the service runs, and how its workers are kept apart."""
        ...

    def metrics(self) -> Frame:
        """Counts and the state of the workers, for the owner."""
        ...


@dataclass(frozen=True, slots=True)
class ClerkCall:
    """One row of the table."""

    roles: frozenset[str]
    dataset: bool
    act: Callable[[CallableClerk, Request], Frame]


def datasets(clerk: CallableClerk, request: Request) -> Frame:
    """The datasets this principal may see; why one is not ready is its owner's to know (T33)."""
    request.only()
    found = []
    for name, held in sorted(clerk.datasets.items()):
        if not request.who.sees(name):
            continue
        facts = wire.to_json(held.oracle(request.whose).facts) if held.ready else None
        entry: Frame = {"name": name, "ready": held.ready, "facts": facts, "schedule": _period(held)}
        if request.who.role == "owner":
            entry["problem"] = None if held.problem is None else refusal(held.problem)["error"]
        found.append(entry)
    return {"datasets": found}


def _period(held: OpenDataset) -> float | None:
    return None if held.schedule is None else held.schedule.period


CALLS: Final[Mapping[str, ClerkCall]] = {
    "health": ClerkCall(NOBODY, False, lambda clerk, _: clerk.health()),
    "whoami": ClerkCall(ANYONE, False, lambda _, request: requests.whoami(request)),
    "datasets": ClerkCall(ANYONE, False, datasets),
    "facts": ClerkCall(ANYONE, True, lambda _, request: requests.facts(request)),
    "foresee": ClerkCall(ASKERS, True, lambda _, request: requests.foresee(request)),
    "ask": ClerkCall(ASKERS, True, lambda _, request: requests.ask(request)),
    "budget": ClerkCall(ANYONE, True, lambda _, request: requests.budget(request)),
    "transcript": ClerkCall(ANYONE, True, lambda _, request: requests.transcript(request)),
    "receipt": ClerkCall(ANYONE, True, lambda _, request: requests.receipt(request)),
    "verify": ClerkCall(READERS, True, lambda _, request: requests.verify(request)),
    "export": ClerkCall(READERS, True, lambda _, request: requests.export(request)),
    "share": ClerkCall(OWNER, True, lambda clerk, request: requests.share(clerk.access, request)),
    "principals": ClerkCall(OWNER, False, lambda clerk, request: requests.principals(clerk.access, request)),
    "add_principal": ClerkCall(
        OWNER, False, lambda clerk, request: requests.add_principal(clerk.access, request, clerk.datasets)
    ),
    "revoke": ClerkCall(OWNER, False, lambda clerk, request: requests.revoke(clerk.access, request)),
    "register": ClerkCall(OWNER, False, lambda clerk, request: register(clerk.manager, request)),
    "withdraw": ClerkCall(OWNER, True, lambda clerk, request: withdraw(clerk.manager, request)),
    "look": ClerkCall(OWNER, False, lambda clerk, request: look(clerk.manager, request)),
    "metrics": ClerkCall(OWNER, False, lambda clerk, _: clerk.metrics()),
}


def answer(clerk: CallableClerk, frame: Mapping[str, object]) -> Frame:
    """The reply to one frame; an error of ours goes back as it is, any other as one constant."""
    begun = time.monotonic()
    name, outcome = "unknown", "ok"
    try:
        call, request = admitted(clerk, frame)
        name = str(frame["call"])
        return {"ok": call.act(clerk, request)}
    except SulqError as error:
        outcome = error.code
        return refusal(error)
    except Exception as error:  # noqa: BLE001 - its text may hold anything; its kind is the operator's to see (T31)
        outcome = "unexpected"
        _log.error("a call failed", extra={"call": name, "error": type(error).__name__})
        return refusal(CuratorError("engine-failed", "The curator failed."))
    finally:
        clerk.counts.call(name, outcome, time.monotonic() - begun)


def admitted(clerk: CallableClerk, frame: Mapping[str, object]) -> tuple[ClerkCall, Request]:
    """The row of the table and the request, if whoever calls may make it."""
    name, body = frame.get("call"), frame.get("body", {})
    call = CALLS.get(name) if isinstance(name, str) else None
    if call is None or not isinstance(body, dict):
        raise QuestionError("bad-request", "There is no such call.")
    if not call.roles:
        return call, Request(cast("Principal", None), cast("OpenDataset", None), {})
    who = _principal(clerk.access, frame.get("token"))
    if who.role not in call.roles:
        raise AccessDenied("forbidden", f"This is not for the role {who.role}.")
    held = _dataset(clerk, who, frame.get("dataset")) if call.dataset else None
    return call, Request(who, cast("OpenDataset", held), cast("Frame", body))


def _principal(access: Access, token: object) -> Principal:
    found = access.find(hashed(token)) if isinstance(token, str) and 0 < len(token) <= MAX_TOKEN_CHARACTERS else None
    if found is None:
        raise AccessDenied("unauthorized", "This token is not known here.")
    return found


def _dataset(clerk: CallableClerk, who: Principal, name: object) -> OpenDataset:
    found = clerk.datasets.get(name) if isinstance(name, str) and who.sees(name) else None
    if found is None:
        raise AccessDenied("not-found", "There is no such dataset.")
    return found
