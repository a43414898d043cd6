"""What an entry says: bodies as canonical JSON, written and read back.

genesis   person space, unit, budget, keys: the first entry, never repeated
register  data under a name; advances the public version
debit     one ask: its event, its question, its place in time
answer    what was answered to a debit
raise     a larger budget
share     what one analyst may spend, and what is kept for it
anchor    where the head is noted outside the ledger from here on
burn      a charge for asks the ledger has lost, as its anchor told
cover     a private source whose people it protects (sources.py)
"""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, cast

import apsw

from sulq.curator.ledger.shares import Share
from sulq.curator.ledger.signature import derived
from sulq.errors import QuestionError, SetupError
from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical
from sulq.kernel.ledger.filter import Totals
from sulq.terms import wire
from sulq.terms.estimator import Estimator
from sulq.terms.privacy import Budget, Epsilon, EpsilonDelta, Event, Rho, Split, SubLinear, Unit
from sulq.version import __version__

FORMAT: Final = 1
TOTALS: Final = frozenset(field.name for field in dataclasses.fields(Totals))
Body = dict[str, object]


class Line(NamedTuple):
    """One line of the transcript."""

    seq: int
    time: str
    question: str
    event: Event
    answer: str | None
    analyst: str = ""
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class Genesis:
    """What was fixed when the person space was created."""

    space: str
    unit: Unit
    budget: Budget
    split: Split | None
    synthetic: bool
    hash_key: bytes  # picks a heavy person's kept rows (SR2)
    receipt_key: bytes
    signing_key: bytes  # the secret half of what receipts and anchors are signed with
    implied: bool = False  # begun before a unit said which ids are one person: it folds them by spelling


@dataclass(frozen=True, slots=True)
class Registration:
    """What stands under a name: digests and facts of the owner's, never of a row.

    `public`: the owner's word that no row of it needs protection, here for any auditor to see (T22).
    `estimators`: functions and certificates that rest on the owner's word, likewise (SR5).
    """

    name: str
    declarations: str
    size: int | None
    source: str
    public: bool = False
    estimators: tuple[Estimator, ...] = ()


def damaged(where: str, why: str) -> SetupError:
    """An error for an entry that cannot be what was written."""
    return SetupError("ledger-damaged", f"The ledger does not verify: {where} {why}.")


def genesis(unit: Unit, budget: Budget, *, open_keys: bool, synthetic: bool, time: str) -> str:
    """Begin a person space."""
    budget.exact  # noqa: B018 - a total may be zero, a budget may not: refused before anything is written
    split = Split.of(budget, open_keys=open_keys) if isinstance(budget, EpsilonDelta) else None
    versions = {"apsw": apsw.apsw_version(), "python": platform.python_version(), "sulq": __version__}
    return canonical(
        {
            "kind": "genesis",
            "format": FORMAT,
            "space": random_bytes(16).hex(),
            "unit": wire.to_json(unit),
            "budget": wire.to_json(budget),
            "split": wire.to_json(split),
            "synthetic": synthetic,
            "hash_key": random_bytes(32).hex(),
            "receipt_key": random_bytes(32).hex(),
            "signing_key": random_bytes(32).hex(),
            "versions": versions,
            "time": time,
        }
    )


def registered(data: Registration, *, time: str) -> str:
    """Data under a name, as the owner registered it."""
    told = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    own = [wire.to_json(item) for item in told.pop("estimators")]
    return canonical({"kind": "register", "time": time} | told | ({"estimators": own} if own else {}))


def debit(
    event: Event,
    *,
    question: str,
    question_digest: str,
    plan_digest: str,
    version: int,
    key: str | None,
    time: str,
    asked: str = "",
    analyst: str = "",
    dataset: str = "",
) -> str:
    """One ask, charged.

    No two debits are the same entry, also where two copies of a ledger are asked
    the same in the same moment: each has drawn noise of its own, and an anchor
    must tell the one history from the other (T46).
    """
    return canonical(
        {
            "kind": "debit",
            "nonce": random_bytes(16).hex(),
            "analyst": analyst,
            "dataset": dataset,
            "event": wire.to_json(event),
            "question": question,
            "question_digest": question_digest,
            "asked": asked or question_digest,
            "plan_digest": plan_digest,
            "version": version,
            "key": key,
            "time": time,
        }
    )


def answer(seq: int, text: str, *, time: str) -> str:
    """What was answered to a debit."""
    return canonical({"kind": "answer", "of": seq, "answer": text, "time": time})


def raised(budget: Budget, split: Split | None, *, time: str) -> str:
    """A larger budget."""
    return canonical({"kind": "raise", "budget": wire.to_json(budget), "split": wire.to_json(split), "time": time})


def shared(analyst: str, share: Share, *, time: str) -> str:
    """What one analyst may spend, and what is kept for it."""
    parts = {"share": wire.to_json(share.share), "reserve": wire.to_json(share.reserve)}
    return canonical({"kind": "share", "analyst": analyst, "time": time} | parts)


def anchored(name: str, *, time: str) -> str:
    """From here on the head is noted in the anchor of this name before a debit is acknowledged."""
    return canonical({"kind": "anchor", "name": name, "time": time})


def burnt(losses: Mapping[str, Totals], *, name: str, settles: str, time: str) -> str:
    """A charge for each analyst's lost asks; `settles` is the hash that the anchor of this name had noted."""
    charges = {analyst: tree_of(loss) for analyst, loss in losses.items()}
    return canonical({"kind": "burn", "losses": charges, "name": name, "settles": settles, "time": time})


def parse(row: Row) -> Body:
    """Read an entry's body."""
    try:
        body = json.loads(row.body)
    except ValueError as error:
        raise damaged(f"entry {row.seq}", "is not JSON") from error
    if not isinstance(body, dict):
        raise damaged(f"entry {row.seq}", "is not a record")
    return body


def text(body: Mapping[str, object], name: str) -> str:
    """A field that is text."""
    value = body.get(name)
    if not isinstance(value, str):
        raise damaged(f"the field {name}", "is not text")
    return value


def whole(body: Mapping[str, object], name: str) -> int:
    """A field that is a whole number, zero or more."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise damaged(f"the field {name}", "is not a whole number")
    return value


def optional(body: Mapping[str, object], name: str) -> str | None:
    """A field that is text or absent."""
    return None if body.get(name) is None else text(body, name)


def read_genesis(body: Mapping[str, object]) -> Genesis:
    """Read the first entry, if this version of sulq knows its format (T91)."""
    if body.get("kind") != "genesis":
        raise damaged("entry 1", "is not the first of a ledger")
    if whole(body, "format") != FORMAT:
        raise SetupError("ledger-format", f"The ledger has format {body['format']}; this sulq knows {FORMAT}.")
    unit = _value(body, "unit")
    if not isinstance(unit, Unit) or not isinstance(body.get("synthetic"), bool):
        raise damaged("entry 1", "does not say whom it protects")
    implied = unit.column is not None and "fold" not in cast("Body", body["unit"])
    if implied:
        unit = dataclasses.replace(unit, fold="spelling")
    budget, split = read_budget(body)
    try:
        hash_key, receipt_key = (bytes.fromhex(text(body, name)) for name in ("hash_key", "receipt_key"))
        # The first ledgers of format 1 were begun without one: theirs follows from the key of their receipts.
        signing_key = bytes.fromhex(optional(body, "signing_key") or derived(receipt_key).hex())
    except ValueError as error:
        raise damaged("entry 1", "has no keys") from error
    if len(signing_key) != len(ORIGIN):
        raise damaged("entry 1", "has no keys")
    return Genesis(
        text(body, "space"), unit, budget, split, body["synthetic"] is True, hash_key, receipt_key, signing_key, implied
    )


def read_registration(body: Mapping[str, object]) -> Registration:
    """Read what was registered."""
    size = None if body.get("size") is None else whole(body, "size")
    public = body.get("public", False)  # entries from before the word was kept say nothing
    if not isinstance(public, bool):
        raise damaged("the field public", "is not a truth value")
    name, declared, source = (text(body, field) for field in ("name", "declarations", "source"))
    return Registration(name, declared, size, source, public, _estimators(body))


def _estimators(body: Mapping[str, object]) -> tuple[Estimator, ...]:
    """The owner's functions of a registration; entries without any, and those from before they were kept, have none."""
    found = _value(body, "estimators") if "estimators" in body else ()
    if not isinstance(found, tuple) or not all(isinstance(item, Estimator) for item in found):
        raise damaged("the field estimators", "does not name functions")
    return found


def read_budget(body: Mapping[str, object]) -> tuple[Budget, Split | None]:
    """Read a budget and how it is divided."""
    budget, split = _value(body, "budget"), _value(body, "split")
    if not isinstance(budget, (Epsilon, Rho, EpsilonDelta, SubLinear)):
        raise damaged("an entry", "has no budget")
    if not (isinstance(split, Split) if isinstance(budget, EpsilonDelta) else split is None):
        raise damaged("an entry", "has a budget that is wrongly divided")
    return budget, split if isinstance(split, Split) else None


def read_share(body: Mapping[str, object]) -> Share:
    """Read what was set aside for an analyst."""
    share, reserve = _value(body, "share"), _value(body, "reserve")
    if not isinstance(share, Fraction) or not isinstance(reserve, Fraction):
        raise damaged("an entry", "has a share that is not a number")
    return Share(share, reserve)


def read_burn(body: Mapping[str, object]) -> dict[str, Totals]:
    """Read what was charged for lost asks."""
    losses = body.get("losses")
    if not isinstance(losses, dict):
        raise damaged("an entry", "burns nothing")
    return {analyst: read_totals(loss) for analyst, loss in losses.items()}


def tree_of(totals: Totals) -> Body:
    """Sums, to be written."""
    return {name: getattr(totals, name) for name in TOTALS}


def read_totals(tree: object) -> Totals:
    """Read sums as they were written."""
    pure = tree.get("pure") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(pure, bool) or tree.keys() != TOTALS:
        raise damaged("an entry", "has totals that are none")
    return Totals(pure=pure, **{name: whole(tree, name) for name in TOTALS - {"pure"}})


def read_losses(body: Mapping[str, object]) -> Event:
    """Read what a debit cost, leaving aside the draws behind it: opening a long ledger reads each of them."""
    event = body.get("event")
    if not isinstance(event, dict) or event.get("kind") != "Event":
        raise damaged("a debit", "has no event")
    epsilon = event.get("epsilon")
    return Event(
        epsilon=None if epsilon is None else _fraction(epsilon),
        rho=_fraction(event.get("rho")),
        key_delta=_fraction(event.get("key_delta")),
        queries=whole(event, "queries"),
    )


def read_event(body: Mapping[str, object]) -> Event:
    """Read a debit's event whole."""
    event = _value(body, "event")
    if not isinstance(event, Event):
        raise damaged("a debit", "has no event")
    return event


def _fraction(tree: object) -> Fraction:
    value = tree.get("value") if isinstance(tree, dict) else None
    top, slash, bottom = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not (slash and top.isdecimal() and bottom.isdecimal() and int(bottom)):  # no sign: a loss is never negative
        raise damaged("a debit", "has a loss that is not a number")
    return Fraction(int(top), int(bottom))


def _value(body: Mapping[str, object], name: str) -> object:
    try:
        return wire.from_json(body.get(name))
    except (QuestionError, SetupError) as error:
        raise damaged(f"the field {name}", "is not a value of sulq") from error
