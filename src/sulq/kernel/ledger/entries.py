"""What an entry says: bodies as canonical JSON, written and read back.

genesis   person space, unit, budget, keys: the first entry, never repeated
debit     one ask: its event, its question, its place in time
raise     a larger budget
burn      a charge for asks the ledger has lost, as its anchor told

These the kernel writes and reads; `NOTES` are kinds that spend nothing, and others' business.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from types import NoneType
from typing import Any, Final, cast

from sulq.errors import QuestionError, SetupError
from sulq.kernel import wire
from sulq.kernel.entropy import random_bytes
from sulq.kernel.facts import Budget, Draw, Epsilon, EpsilonDelta, Event, Rho, Split, SubLinear, Unit
from sulq.kernel.ledger.chain import Row, canonical
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import damaged

FORMAT: Final = 1
NOTES: Final = frozenset({"anchor", "answer", "cover", "register", "share"})
KINDS: Final = {kind.__name__: kind for kind in (Draw, Epsilon, EpsilonDelta, Event, Rho, Split, SubLinear, Unit)}
TOTALS: Final = frozenset(Totals._fields)
Body = dict[str, object]


@dataclass(frozen=True, slots=True)
class Genesis:
    """What was fixed when the person space was created."""

    unit: Unit
    budget: Budget
    split: Split | None
    synthetic: bool


def debit(event: Event, /, *, plan_digest: str, **told: object) -> str:
    """One ask, charged; `told` is what else its entry says: the question, who asked it, and when.

    No two debits are the same entry, also where two servers, or two copies of a ledger, are asked the same in the same
    moment: each draws noise of its own, and must know its own entry (T46).
    """
    own = {"kind": "debit", "nonce": random_bytes(16).hex(), "event": wire.to_json(event, KINDS)}
    return canonical(told | own | {"plan_digest": plan_digest})


def parse(row: Row) -> Body:
    """Read an entry's body."""
    try:
        body = wire.strict(row.body)
    except QuestionError:
        raise damaged(f"entry {row.seq}", "is not JSON") from None
    if not isinstance(body, dict):
        raise damaged(f"entry {row.seq}", "is not a record")
    return body


def value(body: Body, name: str, *kinds: type) -> Any:  # noqa: ANN401 - of one of these kinds
    """A field whose value is of one of these very kinds; what is counted is zero or more."""
    try:
        found = wire.from_json(body.get(name), KINDS)
    except (QuestionError, SetupError) as error:
        raise damaged(f"the field {name}", "is not a value of sulq") from error
    if type(found) not in kinds or (isinstance(found, int) and found < 0):
        raise damaged(f"the field {name}", "is not of its kind")
    return found


def read_genesis(body: Body) -> Genesis:
    """Read the first entry, if this version of sulq knows its format (T91)."""
    if body.get("kind") != "genesis":
        raise damaged("entry 1", "is not the first of a ledger")
    if value(body, "format", int) != FORMAT:
        raise SetupError("ledger-format", f"The ledger has format {body['format']}; this sulq knows {FORMAT}.")
    unit: Unit = value(body, "unit", Unit)
    if unit.column is not None and "fold" not in cast("Body", body["unit"]):  # from before units said who is one person
        unit = dataclasses.replace(unit, fold="spelling")
    return Genesis(unit, *read_budget(body), value(body, "synthetic", bool))


def read_budget(body: Body) -> tuple[Budget, Split | None]:
    """Read a budget and how it is divided."""
    budget: Budget = value(body, "budget", Epsilon, Rho, EpsilonDelta, SubLinear)
    return budget, value(body, "split", Split if isinstance(budget, EpsilonDelta) else NoneType)


def read_burn(body: Body) -> dict[str, Totals]:
    """Read what was charged for lost asks."""
    losses = body.get("losses")
    if not isinstance(losses, dict):
        raise damaged("an entry", "burns nothing")
    return {analyst: read_totals(loss) for analyst, loss in losses.items()}


def read_totals(tree: object) -> Totals:
    """Read sums as they were written."""
    if not isinstance(tree, dict) or tree.keys() != TOTALS:
        raise damaged("an entry", "has totals that are none")
    return Totals(**{name: value(tree, name, bool if name == "pure" else int) for name in TOTALS})


def read_losses(body: Body) -> Event:
    """Read what a debit cost, leaving aside the draws behind it: opening a long ledger reads each of them."""
    event = body.get("event")
    if not isinstance(event, dict) or event.get("kind") != "Event":
        raise damaged("a debit", "has no event")
    epsilon = None if event.get("epsilon") is None else _fraction(event["epsilon"])
    return Event(epsilon, _fraction(event.get("rho")), _fraction(event.get("key_delta")), value(event, "queries", int))


def _fraction(tree: object) -> Fraction:
    text = tree.get("value") if isinstance(tree, dict) else None
    top, slash, bottom = text.partition("/") if isinstance(text, str) else ("", "", "")
    if not (slash and top.isdecimal() and bottom.isdecimal() and int(bottom)):  # no sign: a loss is never negative
        raise damaged("a debit", "has a loss that is not a number")
    return Fraction(int(top), int(bottom))
