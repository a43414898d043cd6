"""What an entry notes besides what was spent: bodies as canonical JSON, written and read back.

register  data under a name; advances the public version
answer    what was answered to a debit
share     what one analyst may spend, and what is kept for it
anchor    where the head is noted outside the ledger from here on
burn      a charge for asks the ledger has lost, which the kernel reads
cover     a private source whose people it protects (sources.py)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from sulq.answers import wire
from sulq.curator.ledger.shares import Share
from sulq.errors import QuestionError, SetupError
from sulq.kernel.ledger.chain import canonical
from sulq.kernel.ledger.entries import TOTALS, Body
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import damaged
from sulq.language.estimator import Estimator
from sulq.language.privacy import Event


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


def registered(data: Registration, *, time: str) -> str:
    """Data under a name, as the owner registered it."""
    told = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    own = [wire.to_json(item) for item in told.pop("estimators")]
    return canonical({"kind": "register", "time": time} | told | ({"estimators": own} if own else {}))


def answer(seq: int, text: str, *, time: str) -> str:
    """What was answered to a debit."""
    return canonical({"kind": "answer", "of": seq, "answer": text, "time": time})


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


def tree_of(totals: Totals) -> dict[str, object]:
    """Sums, to be written."""
    return {name: getattr(totals, name) for name in TOTALS}


def text(body: Body, name: str) -> str:
    """A field that is text."""
    found = body.get(name)
    if not isinstance(found, str):
        raise damaged(f"the field {name}", "is not text")
    return found


def whole(body: Body, name: str) -> int:
    """A field that is a whole number, zero or more."""
    found = body.get(name)
    if type(found) is not int or found < 0:
        raise damaged(f"the field {name}", "is not a whole number")
    return found


def optional(body: Body, name: str) -> str | None:
    """A field that is text or absent."""
    return None if body.get(name) is None else text(body, name)


def read_registration(body: Body) -> Registration:
    """Read what was registered."""
    size = None if body.get("size") is None else whole(body, "size")
    public = body.get("public", False)  # entries from before the word was kept say nothing
    if not isinstance(public, bool):
        raise damaged("the field public", "is not a truth value")
    name, declared, source = (text(body, field) for field in ("name", "declarations", "source"))
    return Registration(name, declared, size, source, public, _estimators(body))


def _estimators(body: Body) -> tuple[Estimator, ...]:
    """The owner's functions of a registration; entries without any, and those from before they were kept, have none."""
    found = _value(body, "estimators") if "estimators" in body else ()
    if not isinstance(found, tuple) or not all(isinstance(item, Estimator) for item in found):
        raise damaged("the field estimators", "does not name functions")
    return found


def read_share(body: Body) -> Share:
    """Read what was set aside for an analyst."""
    share, reserve = _value(body, "share"), _value(body, "reserve")
    if not isinstance(share, Fraction) or not isinstance(reserve, Fraction):
        raise damaged("an entry", "has a share that is not a number")
    return Share(share, reserve)


def read_event(body: Body) -> Event:
    """Read a debit's event whole."""
    event = _value(body, "event")
    if not isinstance(event, Event):
        raise damaged("a debit", "has no event")
    return event


def _value(body: Body, name: str) -> object:
    try:
        return wire.from_json(body.get(name))
    except (QuestionError, SetupError) as error:
        raise damaged(f"the field {name}", "is not a value of sulq") from error
