"""Every call the clerk answers, in one table: who may make it, whether it is about a dataset, what it does.

The clerk believes no word of the web: each call carries the token itself, which is hashed and looked up in the access
store here. So a web process that was broken into can do no more than the tokens it is shown, and whoever reads the
store is not let in by it (T80). A dataset that does not exist and one of somebody else's are answered alike.

Registering data is among them. Files lie under the owner's `data_root` and nowhere else; names and kinds of columns
are looked at, bounds and categories are asked for, never read off the rows (T17).
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar, cast

from sulq.addresses import stem
from sulq.answers import wire
from sulq.api.declarations import SUFFIXES
from sulq.data_files import Files, find_files
from sulq.errors import AccessDenied, CuratorError, QuestionError, SetupError, SulqError
from sulq.language.domain import COLUMNS
from sulq.language.privacy import DELTA_SHARES, Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.language.rows_choice import AUTO, AUTO_FIELDS, DeclaredUnit
from sulq.service.clerk import request as requests
from sulq.service.clerk.access import Principal
from sulq.service.clerk.call_record import CallRecord, Kind
from sulq.service.clerk.registration import declare
from sulq.service.clerk.request import CallableClerk, Request
from sulq.service.clerk.tokens import hashed
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import TOOK, Frame, refusal
from sulq.service.logs import about, during, measured
from sulq.service.settings import DatasetSettings

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
ANCHOR: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # a file's name: no folder, none of those beside it
ALONE: Final = ("file", "table", "columns", "size", "graph")  # what a dataset of one table says of it
FIELDS: Final = ("name", *ALONE, "tables", "unit", "budget", *DELTA_SHARES, "synthetic", "anchor")
PART: Final = ("file", "columns", "size", "key", "public", "person", "references")  # what each of several tables says
MAX_ROWS: Final = 2**40  # rows
T = TypeVar("T")


def look(request: Request) -> Frame:
    """What columns a file has, of several the first and partitions; with none named, which files there are."""
    root = _root(request)
    if request.body.get("file") is None:
        files = (path for path in root.rglob("*") if path.is_file() and path.name.lower().endswith(SUFFIXES))
        return {"files": sorted(str(path.relative_to(root)) for path in files)}
    data = _data(request)
    if isinstance(data, Path):
        return request.clerk.manager.look(data)
    found = request.clerk.manager.look(data.paths[0], data.names)
    return found | {"tables": [{"table": stem(data.paths[0]), "columns": found["columns"]}]}


def check(request: Request) -> Frame:
    """How declarations fit the rows that an owner is about to register: exact counts, for this call alone."""
    return request.clerk.manager.check(_declared(request))


def register(request: Request) -> Frame:
    """A new dataset, with everything public about it said by its owner."""
    declared = _declared(request)
    ready = request.clerk.manager.hold(declared)
    held = request.clerk.manager.datasets.get(declared.name)
    choice = None if held is None or held.ledger is None else held.ledger.choice
    return {"name": declared.name, "ready": ready} | ({} if choice is None else {"choice": wire.to_json(choice)})


def _declared(request: Request) -> DatasetSettings:
    """What a call says of a dataset."""
    name = request.text("name")
    if not NAME.fullmatch(name):
        raise QuestionError("bad-request", "A dataset's name is letters, digits, _ and -, a letter first.")
    return (_alone if request.body.get("tables") is None else _several)(request, name)


def _alone(request: Request, name: str) -> DatasetSettings:
    """A dataset of one table."""
    return declare(
        name,
        _data(request),
        _columns(request),
        budget=_budget(request),
        basic_share=request.body.get("basic_share"),
        key_share=request.body.get("key_share"),
        unit=_unit(request),
        table=request.optional("table"),
        size=_size(request),
        synthetic=request.truth("synthetic"),
        anchor=_anchor(request),
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


def _several(request: Request, name: str) -> DatasetSettings:
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

    def each(read: Callable[[Request], T | None]) -> dict[str, T]:
        found = {table: read(part) for table, part in parts.items()}
        return {table: value for table, value in found.items() if value is not None}

    keys, persons = each(lambda part: part.optional("key")), each(lambda part: part.optional("person"))
    sizes = each(_size)
    return declare(
        name,
        {table: _data(part) for table, part in parts.items()},
        {table: _columns(part) for table, part in parts.items()},
        budget=_budget(request),
        basic_share=request.body.get("basic_share"),
        key_share=request.body.get("key_share"),
        unit=_unit(request),
        size=sizes,
        synthetic=request.truth("synthetic"),
        anchor=_anchor(request),
        keys=keys,
        public=tuple(table for table, part in parts.items() if part.truth("public")),
        persons=persons,
        references=each(lambda part: _references(part) or None),
    )


def withdraw(request: Request) -> Frame:
    """Take a dataset away that was registered by a call; its ledger stays, and with it what was spent."""
    request.clerk.manager.withdraw(request.held.name)
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


def _data(request: Request) -> Path | Files:
    """The file that a call names, or several as one table: a list, a pattern or a folder."""
    root, told = _root(request), request.body.get("file")
    if not isinstance(told, list):
        name = request.text("file")
        several = find_files(root / name, within=root.resolve()) if name.strip() else None
        return place(root, name) if several is None else several
    if not told or not all(isinstance(item, str) and item.strip() for item in told):
        raise QuestionError("bad-request", "file names a data file, or several in a list.")
    return cast("Files", find_files([root / item for item in told], within=root.resolve()))


def _root(request: Request) -> Path:
    root = request.clerk.manager.data_root
    if root is None:
        raise SetupError("missing-file", "This server has no data_root.", "Set data_root in [server].")
    return root


def _anchor(request: Request) -> Path | None:
    """The anchor that a registration names, in the folder that the configuration has for them (T70)."""
    name, root = request.optional("anchor"), request.clerk.manager.service.anchors
    if name is None:
        return None
    if root is None:
        raise SetupError("bad-anchor", "This server has no folder for anchors.", "Set anchors in [server].")
    path = (root / name).resolve() if ANCHOR.fullmatch(name) else None
    if path is None or path.parent != root.resolve():
        why = "anchor is the name of a file: letters, digits, ., _ and -, a letter or digit first."
        raise SetupError("bad-anchor", why, "Name a file, and no folder: it lies in the server's folder of anchors.")
    return path


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
    told = request.body.get("unit")
    if told is None:
        return Unit()
    if isinstance(told, dict) and told.get("rows") == AUTO:
        words = {name: told[name] for name in told if name != "kind"}
        if told.get("kind") != "Unit" or not words.keys() <= AUTO_FIELDS:
            raise QuestionError("bad-request", "unit says whom an answer hides.")
        return DeclaredUnit(**words)
    return cast("Unit", request.value("unit", Unit, "unit says whom an answer hides."))


def _budget(request: Request) -> Budget:
    kinds = (Epsilon, EpsilonDelta, Rho, SubLinear)
    return cast("Budget", request.value("budget", kinds, "budget says what may be lost in total."))


ANYONE: Final = frozenset({"owner", "analyst", "auditor"})
ASKERS: Final = frozenset({"owner", "analyst"})
READERS: Final = frozenset({"owner", "auditor"})
OWNER: Final = frozenset({"owner"})
NOBODY: Final[frozenset[str]] = frozenset()  # no token is asked for
MAX_TOKEN_CHARACTERS: Final = 200  # of a token

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClerkCall:
    """One row of the table; `fields` are those that a body may have, None where none is read; `log`: how it is kept."""

    roles: frozenset[str]
    dataset: bool
    act: Callable[[Request], Frame]
    fields: tuple[str, ...] | None = ()
    log: Kind = ""


def datasets(request: Request) -> Frame:
    """The datasets this principal may see; why one is not ready is its owner's to know (T33).

    What is left is as this process last knew it: one ledger that does not answer keeps nobody waiting for the list.
    """
    found = []
    for name, held in sorted(request.clerk.datasets.items()):
        if not request.who.sees(name):
            continue
        facts = None
        with contextlib.suppress(SulqError):  # not ready, or no more
            facts = wire.to_json(held.oracle(request.whose).known_facts)
        period = None if held.schedule is None else held.schedule.period
        entry: Frame = {"name": name, "ready": facts is not None, "facts": facts, "schedule": period}
        if request.who.role == "owner":
            entry["problem"] = None if held.problem is None else refusal(held.problem)["error"]
        found.append(entry)
    return {"datasets": found}


CALLS: Final[Mapping[str, ClerkCall]] = {
    "health": ClerkCall(NOBODY, False, lambda request: request.clerk.health(), None),
    "readiness": ClerkCall(OWNER, False, lambda request: request.clerk.readiness()),
    "whoami": ClerkCall(ANYONE, False, requests.whoami),
    "datasets": ClerkCall(ANYONE, False, datasets),
    "facts": ClerkCall(ANYONE, True, requests.facts),
    "terms": ClerkCall(ASKERS, True, requests.terms),
    "foresee": ClerkCall(ASKERS, True, requests.foresee, ("question", "spend")),
    "afford": ClerkCall(ASKERS, True, requests.afford, ("events",)),
    "ask": ClerkCall(ASKERS, True, requests.ask, ("question", "spend", "key", "reuse", "stored"), "ask"),
    "budget": ClerkCall(ANYONE, True, requests.budget),
    "transcript": ClerkCall(ANYONE, True, requests.transcript, ("after", "limit")),
    "receipt": ClerkCall(ANYONE, True, requests.receipt, ("seq",)),
    "verify": ClerkCall(READERS, True, requests.verify, log="read"),
    "export": ClerkCall(READERS, True, requests.export, ("after", "limit"), "read"),
    "share": ClerkCall(OWNER, True, requests.share, ("analyst", "share", "reserve"), "act"),
    "principals": ClerkCall(OWNER, False, requests.principals),
    "add_principal": ClerkCall(OWNER, False, requests.add_principal, ("name", "role", "datasets", "days"), "act"),
    "rotate": ClerkCall(ANYONE, False, requests.rotate, ("name", "overlap", "days"), "act"),
    "revoke": ClerkCall(OWNER, False, requests.revoke, ("name",), "act"),
    "register": ClerkCall(OWNER, False, register, FIELDS, "act"),
    "withdraw": ClerkCall(OWNER, True, withdraw, log="act"),
    "look": ClerkCall(OWNER, False, look, ("file",)),
    "check": ClerkCall(OWNER, False, check, FIELDS, "act"),
    "begin_session": ClerkCall(ANYONE, False, requests.begin_session, log="act"),
    "end_session": ClerkCall(ANYONE, False, requests.end_session, ("all",), "note"),
    "access": ClerkCall(OWNER, False, requests.access, ("after", "limit")),
    "metrics": ClerkCall(OWNER, False, lambda request: request.clerk.metrics(), None),
}


def answer(clerk: CallableClerk, frame: Mapping[str, object]) -> Frame:
    """The reply to one frame; an error of ours goes back as it is, any other as one constant."""
    with during(frame.get("request")), measured() as worked:
        reply = _answer(clerk, frame)
    held = clerk.datasets.get(str(frame.get("dataset"))) if frame.get("times") is True else None
    if held is None or held.schedule is not None:  # under a schedule no time is told, to nobody
        return reply
    return {**reply, TOOK: sum(worked)}


def _answer(clerk: CallableClerk, frame: Mapping[str, object]) -> Frame:
    begun = time.monotonic()
    called, outcome, dataset = frame.get("call"), "ok", ""
    name = called if isinstance(called, str) and called in CALLS else "unknown"
    record = CallRecord(clerk.access.log, frame, _kind(frame))
    try:
        call, request = admitted(clerk, frame, record)
        dataset = request.held.name if call.dataset else ""
        about("" if request.who is None else request.who.name)
        if call.fields is not None:
            request.only(*call.fields)
        with record.during(request.body):
            reply = call.act(request)
        outcome = requests.kind_of(reply) if name == "ask" else outcome
        record.answered(reply)
    except SulqError as error:
        outcome = error.code
        record.refused(outcome)
        return refusal(error)
    except Exception as error:  # noqa: BLE001 - its text may hold anything; its kind is the operator's to see (T31)
        outcome = "unexpected"
        record.refused("engine-failed")
        _log.error("a call failed", extra={"call": name, "error": type(error).__name__})
        return refusal(CuratorError("engine-failed", "The curator failed."))
    else:
        return {"ok": reply}
    finally:
        taken = time.monotonic() - begun
        clerk.counts.call(name, "ok" if outcome in requests.ASK_KINDS else outcome, taken)
        if name == "ask" and dataset:
            clerk.counts.ask(dataset, outcome, taken)


def _kind(frame: Mapping[str, object]) -> Kind:
    """How a call is written down in the access log."""
    call = CALLS.get(str(frame.get("call")))
    return "" if call is None else call.log


def admitted(clerk: CallableClerk, frame: Mapping[str, object], record: CallRecord) -> tuple[ClerkCall, Request]:
    """The row of the table and the request, if whoever calls may make it; the record is told who that is."""
    name, body = frame.get("call"), frame.get("body", {})
    call = CALLS.get(name) if isinstance(name, str) else None
    if call is None or not isinstance(body, dict):
        raise QuestionError("bad-request", "There is no such call.")
    if not call.roles:
        return call, Request(clerk, cast("Principal", None), cast("OpenDataset", None), {})
    token, dataset = frame.get("token"), frame.get("dataset")
    fits = isinstance(token, str) and 0 < len(token) <= MAX_TOKEN_CHARACTERS
    shown = hashed(str(token)) if fits else ""
    who = clerk.access.find(shown) if fits else None
    if who is None:
        raise AccessDenied("unauthorized", "This token is not known here.")
    record.known(who.name)
    if who.role not in call.roles:
        raise AccessDenied("forbidden", f"This is not for the role {who.role}.")
    seen = call.dataset and isinstance(dataset, str) and who.sees(dataset)
    held = clerk.datasets.get(str(dataset)) if seen else None
    if call.dataset and held is None:
        raise AccessDenied("not-found", "There is no such dataset.")
    return call, Request(clerk, who, cast("OpenDataset", held), cast("Frame", body), shown)
