"""Every call the clerk answers, in one table: who may make it, whether it is about a dataset, what it does.

The clerk lets nobody in on the web's word: each call carries the token itself,
which is hashed and looked up in the access store here. So a web process that
was broken into can do no more than the tokens it is shown, and what the
access store holds is no token: whoever reads it is not let in by it (T80). A
dataset that does not exist and one that is not this principal's are answered alike.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, cast

from sulq.answers import wire
from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.service.call_counts import Counts
from sulq.service.clerk import access_calls, ask_calls, ledger_calls, register_calls
from sulq.service.clerk.access import Access, Principal, hashed
from sulq.service.clerk.dataset_manager import DatasetManager
from sulq.service.clerk.open_dataset import OpenDataset
from sulq.service.clerk.request import Request
from sulq.service.ipc import Frame, refusal

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
    "whoami": ClerkCall(ANYONE, False, lambda _, request: access_calls.whoami(request)),
    "datasets": ClerkCall(ANYONE, False, datasets),
    "facts": ClerkCall(ANYONE, True, lambda _, request: ask_calls.facts(request)),
    "foresee": ClerkCall(ASKERS, True, lambda _, request: ask_calls.foresee(request)),
    "ask": ClerkCall(ASKERS, True, lambda _, request: ask_calls.ask(request)),
    "budget": ClerkCall(ANYONE, True, lambda _, request: ledger_calls.budget(request)),
    "transcript": ClerkCall(ANYONE, True, lambda _, request: ledger_calls.transcript(request)),
    "receipt": ClerkCall(ANYONE, True, lambda _, request: ledger_calls.receipt(request)),
    "verify": ClerkCall(READERS, True, lambda _, request: ledger_calls.verify(request)),
    "export": ClerkCall(READERS, True, lambda _, request: ledger_calls.export(request)),
    "share": ClerkCall(OWNER, True, lambda clerk, request: ledger_calls.share(clerk.access, request)),
    "principals": ClerkCall(OWNER, False, lambda clerk, request: access_calls.principals(clerk.access, request)),
    "add_principal": ClerkCall(
        OWNER, False, lambda clerk, request: access_calls.add_principal(clerk.access, request, clerk.datasets)
    ),
    "revoke": ClerkCall(OWNER, False, lambda clerk, request: access_calls.revoke(clerk.access, request)),
    "register": ClerkCall(OWNER, False, lambda clerk, request: register_calls.register(clerk.manager, request)),
    "withdraw": ClerkCall(OWNER, True, lambda clerk, request: register_calls.withdraw(clerk.manager, request)),
    "look": ClerkCall(OWNER, False, lambda clerk, request: register_calls.look(clerk.manager, request)),
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
