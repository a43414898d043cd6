"""A call as its function gets it: who calls, about which dataset, with what; already let in, its fields known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Final, Protocol, TypeVar, cast

from sulq.answers import wire
from sulq.answers.oracle import ForecastingOracle, KeepingOracle
from sulq.answers.wire import LOSSES
from sulq.curator.ledger.ledger import Line
from sulq.curator.ledger.shares import Share
from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.language.privacy import Event, Loss
from sulq.language.question import QUESTIONS, Question
from sulq.service.answer_length import check_length, may_be_long
from sulq.service.clerk.access import ALL, Access, Principal, nearest
from sulq.service.clerk.dataset_manager import DatasetManager
from sulq.service.clerk.ledger_reader import MAX_WAIT_SECONDS, read_aside
from sulq.service.clerk.tokens import MAX_OVERLAP_SECONDS, MAX_TOKEN_DAYS, OVERLAP_SECONDS, TOKEN_DAYS
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import Frame
from sulq.service.logs import Counts
from sulq.service.schedule import ScheduledAsk

SEES_ALL: Final = frozenset({"owner", "auditor"})

T = TypeVar("T")


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

    def readiness(self) -> Frame:
        """Which datasets cannot be asked and why, for the owner."""
        ...

    def metrics(self) -> Frame:
        """Counts and the state of the workers, for the owner."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One call: whose token it carries and the dataset it is about, wherever the table of calls asks for them."""

    clerk: CallableClerk
    who: Principal
    held: OpenDataset
    body: Mapping[str, object]
    shown: str = ""  # the hash of the token, or of the session, that the call came with

    @property
    def whose(self) -> str | None:
        """Whose part of a dataset's ledger this principal may read; None for all of it."""
        return None if self.who.role in SEES_ALL else self.who.name

    def only(self, *names: str) -> None:
        """Refuse fields that this call does not have: a misspelt one would be silently left out."""
        for name in self.body:
            if name not in names:
                raise QuestionError("bad-request", f"This call has no field {name[:40]!r}.")

    def text(self, name: str) -> str:
        """A field that is text."""
        return self._of(str, name, "text")

    def optional(self, name: str) -> str | None:
        """A field that is text, or left out."""
        return None if self.body.get(name) is None else self.text(name)

    def whole(self, name: str, usual: int, most: int) -> int:
        """A field that is a whole number from 0 to `most`."""
        value = self._of(int, name, "a whole number") if self.body.get(name) is not None else usual
        if not 0 <= value <= most:
            raise QuestionError("bad-request", f"{name} must lie between 0 and {most}.")
        return value

    def number(self, name: str) -> float:
        """A field that is a number."""
        value = self.body.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise QuestionError("bad-request", f"{name} must be a number.")
        return float(value)

    def truth(self, name: str) -> bool:
        """A field that is true or false; false where it is left out."""
        return self.body.get(name) is not None and self._of(bool, name, "true or false")

    def names(self, name: str) -> list[str]:
        """A field that is a list of texts; none where it is left out."""
        value = [] if self.body.get(name) is None else self.body[name]
        if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise QuestionError("bad-request", f"{name} must be a list of names.")
        return value

    def tree(self, name: str) -> dict[str, object]:
        """A field that is an object."""
        return cast("dict[str, object]", self._of(dict, name, "an object"))

    def value(self, name: str, kinds: type | tuple[type, ...], message: str, code: str = "bad-request") -> object:
        """A field that holds the canonical JSON of one of these kinds."""
        found = wire.from_json(self.body.get(name))
        if not isinstance(found, kinds):
            raise QuestionError(code, message)
        return found

    def question(self) -> Question:
        """The field `question`."""
        found = self.value("question", QUESTIONS, "The field question holds no question.", "wire-format")
        return cast("Question", found)

    def spend(self) -> Loss | None:
        """The field `spend`; None where it is left out."""
        if self.body.get("spend") is None:
            return None
        return cast("Loss", self.value("spend", LOSSES, "The field spend holds no loss.", "wire-format"))

    def _of(self, kind: type[T], name: str, what: str) -> T:
        value = self.body.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise QuestionError("bad-request", f"{name} must be {what}.")
        return value


def facts(request: Request) -> Frame:
    """Everything public, with what is left for this analyst."""
    return {"facts": wire.to_json(request.held.oracle(request.whose).facts)}


def terms(request: Request) -> Frame:
    """All that a plan follows from: public facts as this analyst has them, and the seconds an ask may take."""
    curator, _ = request.held.opened()
    facts = request.held.oracle(request.who.name).facts
    return {"facts": wire.to_json(facts), "limit": curator.curator.limit}


def foresee(request: Request) -> Frame:
    """Price and accuracy; free, reads no row."""
    question = request.question()
    plan = request.held.oracle(request.who.name).foresee(question, spend=request.spend())
    if may_be_long(question):
        check_length(plan)
    return {"plan": wire.to_json(plan)}


def afford(request: Request) -> Frame:
    """What would be left after each of these losses; free, reads no row."""
    events = wire.from_json(request.body.get("events"))
    if not isinstance(events, tuple) or not all(isinstance(event, Event) for event in events):
        raise QuestionError("wire-format", "The field events holds a list of losses.")
    oracle = cast("ForecastingOracle", request.held.oracle(request.who.name))
    return {"left": wire.to_json(oracle.afford(events))}


def ask(request: Request) -> Frame:
    """Pay and answer; with `stored` give a stored answer or none, free."""
    question, spend = request.question(), request.spend()
    key, reuse, stored = request.optional("key"), request.truth("reuse"), request.truth("stored")
    oracle = request.held.oracle(request.who.name)
    if may_be_long(question):
        check_length(oracle.foresee(question, spend=spend))

    def answer() -> Frame:
        if stored:
            return {"answer": wire.to_json(cast("KeepingOracle", oracle).stored(question, spend=spend))}
        return {"answer": wire.to_json(oracle.ask(question, spend=spend, key=key, reuse=reuse))}

    with request.held.asking():
        return timed(request.held, request.who.name, answer)


ASK_KINDS: Final = frozenset({"paid", "reused", "none"})


def kind_of(reply: Frame) -> str:
    """How an ask went that was answered: paid for, a stored answer again, or none was stored."""
    found = reply.get("answer")
    several = found.get("answers") if isinstance(found, dict) else None
    first = several[0] if isinstance(several, list) and several else found
    if not isinstance(first, dict):
        return "none"
    return "reused" if first.get("reused") is True else "paid"


def timed(held: OpenDataset, whose: str, work: Callable[[], T]) -> T:
    """Do what reads rows, in a slot of its dataset; under a release schedule its outcome leaves at its tick.

    The slot is free again when the work is done; until its tick nobody finds the answer in any book (`Paced`).
    """
    schedule = held.schedule
    if schedule is None:
        with held.slot(whose):
            return work()
    turn = ScheduledAsk(schedule)
    try:
        with ExitStack() as slot, ExitStack() as times:
            slot.enter_context(held.slot(whose))
            if turn.late:
                raise SetupError("not-ready", "Too many questions are under way.", "Try again in a moment.")
            turn.worked = slot.close
            if held.rows is not None:
                end = turn.arrived + schedule.period
                times.enter_context(held.rows.until(end, end - schedule.period / 2))
            if held.paced is not None:
                times.enter_context(held.paced.during(turn))
            return work()
    finally:
        if not turn.wait():
            held.late += 1


def whoami(request: Request) -> Frame:
    """Whose token this is."""
    return asdict(request.who)


def principals(request: Request) -> Frame:
    """Everybody who was ever let in; no token and no hash of one."""
    return {"principals": [asdict(principal) for principal in request.clerk.access.list()]}


def add_principal(request: Request) -> Frame:
    """Let somebody in, for the datasets that are named, or for "all"; the token is in this reply and nowhere else."""
    days, name, role = request.whole("days", TOKEN_DAYS, MAX_TOKEN_DAYS), request.text("name"), request.text("role")
    if request.body.get("datasets") == ALL:
        return {"token": request.clerk.access.add(name, role, ALL, days)}
    scope = request.names("datasets")
    check_datasets(scope, request.clerk.datasets)
    return {"token": request.clerk.access.add(name, role, scope, days)}


def rotate(request: Request) -> Frame:
    """A new token for a name, beside which the old one is good for a while; one's own lives no longer than the old."""
    overlap = request.whole("overlap", OVERLAP_SECONDS, MAX_OVERLAP_SECONDS)
    name, days = request.text("name"), request.body.get("days")
    if request.who.role != "owner":
        if name.lower() != request.who.name.lower():
            raise AccessDenied("forbidden", f"The token of another is not for the role {request.who.role}.")
        if days is not None:
            raise AccessDenied("forbidden", "How long a token lives, an owner says.")
        return {"token": request.clerk.access.rotate(name, overlap, holder=request.shown)}
    return {"token": request.clerk.access.rotate(name, overlap, request.whole("days", TOKEN_DAYS, MAX_TOKEN_DAYS))}


def begin_session(request: Request) -> Frame:
    """A session of the console's, for the token that this call came with; its id is in this reply and nowhere else."""
    return {"session": request.clerk.access.begin_session(request.shown)}


def end_session(request: Request) -> Frame:
    """End the session that this call came with, or `all` of the caller's."""
    if request.truth("all"):
        request.clerk.access.end_sessions(request.who.name)
    else:
        request.clerk.access.end_session(request.shown)
    return {}


def access(request: Request) -> Frame:
    """Entries of the access log after one, oldest first; `last` is the place of the last there is."""
    after, limit = request.whole("after", 0, 2**62), request.whole("limit", PAGE_LINES, PAGE_LINES)
    found, last = request.clerk.access.log.page(after, limit)
    return {"entries": [entry.told() for entry in found], "last": last}


def check_datasets(scope: Collection[str], known: Collection[str]) -> None:
    """Refuse a name that is no dataset: its token would open nothing, or one day something nobody meant."""
    for name in scope:
        if name not in known:
            raise QuestionError("bad-principal", f"There is no dataset {name[:80]!r}{nearest(name, known)}.")


def revoke(request: Request) -> Frame:
    """End a token, from the next call on."""
    request.clerk.access.revoke(request.text("name"))
    return {}


PAGE_LINES: Final = 1000  # lines of a transcript in one reply


def transcript(request: Request) -> Frame:
    """Questions and answers after an entry, oldest first; `datasets`: of which ones, null for all."""
    after, limit = request.whole("after", 0, 2**62), request.whole("limit", PAGE_LINES, PAGE_LINES)
    ledger = request.held.open_ledger()
    scope = request.who.datasets
    lines = ledger.transcript(analyst=request.whose, datasets=scope, after=after, limit=limit)
    return {"lines": [line_of(line) for line in lines], "head": ledger.head, "datasets": scope}


def verify(request: Request) -> Frame:
    """Check the ledger again, on from what was checked before: chain, totals, budget."""
    found = request.held.open_ledger().verify(read=read_aside, patience=MAX_WAIT_SECONDS)
    plain = {name: getattr(found, name) for name in ("space", "entries", "debits", "answers", "head")}
    return {**plain, **_values(found, "unit", "budget", "spent", "remaining", "proved"), "text": str(found)}


def export(request: Request) -> Frame:
    """The transcript with the verification it goes with; a long one in several parts, each after the last."""
    found = transcript(request)
    return {
        "report": verify(request),
        "datasets": found["datasets"],
        "lines": found["lines"],
        "public_key": request.held.open_ledger().public_key,
    }


def receipt(request: Request) -> Frame:
    """One debit's receipt, signed by the ledger."""
    seq = request.whole("seq", 0, 2**62)
    found = request.held.open_ledger().receipt(seq, analyst=request.whose, datasets=request.who.datasets)
    return {"receipt": wire.strict(found)}


def line_of(line: Line) -> Frame:
    """A line of the transcript as JSON; the question and the answer are canonical JSON already, and stay text."""
    plain = {name: getattr(line, name) for name in ("seq", "time", "analyst", "dataset", "question")}
    return {**plain, "event": wire.to_json(line.event), "answer": line.answer}


def budget(request: Request) -> Frame:
    """What there is, what is spent and left; owner and auditor see every analyst's share, an analyst its own."""
    ledger, whose = request.held.open_ledger(), request.whose
    whole, spent, remaining = map(wire.to_json, ledger.standing(analyst=whose))
    shares = [
        {
            "analyst": standing.analyst,
            "share": float(standing.share),
            "reserve": float(standing.reserve),
            **_values(standing, "spent", "remaining"),
        }
        for standing in ledger.standings()
        if whose in (None, standing.analyst)
    ]
    return {"budget": whole, "spent": spent, "remaining": remaining, "shares": shares}


def share(request: Request) -> Frame:
    """Set what part of the budget an analyst may spend, and what part no other can take from it.

    A name that was never let in and has no account would bind nobody: it is refused with the nearest one.
    """
    reserve = request.number("reserve") if request.body.get("reserve") is not None else 0.0
    analyst = request.text("analyst")
    told, ledger = Share.of(request.number("share"), reserve), request.held.open_ledger()
    known = {principal.name for principal in request.clerk.access.list()}
    known |= {standing.analyst for standing in ledger.standings()}
    if analyst not in known:
        raise AccessDenied("not-found", f"There is no analyst {analyst[:80]!r}{nearest(analyst, known)}.")
    ledger.share(analyst, told)
    return {"analyst": analyst}


def _values(found: object, *names: str) -> Frame:
    """These attributes in the canonical JSON."""
    return {name: wire.to_json(getattr(found, name)) for name in names}
