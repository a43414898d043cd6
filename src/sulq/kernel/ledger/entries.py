"""What an entry says: bodies as canonical JSON, written and read back.

genesis   person space, unit, budget, keys: the first entry, never repeated
debit     one ask: its event, its question, its place in time
raise     a larger budget
burn      a charge for asks the ledger has lost, as its anchor told

These the kernel writes and reads; `NOTES` are kinds that spend nothing, and others' business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, cast

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
SECRETS: Final = ("hash_key", "receipt_key", "signing_key")
TOTALS: Final = frozenset(field.name for field in dataclasses.fields(Totals))
Body = dict[str, object]


@dataclass(frozen=True, slots=True)
class Genesis:
    """What was fixed when the person space was created."""

    unit: Unit
    budget: Budget
    split: Split | None
    synthetic: bool
    receipt_key: bytes


def genesis(unit: Unit, budget: Budget, /, *, open_keys: bool, synthetic: bool, **told: object) -> str:
    """Begin a person space; `told` is what else its entry says: when, and with which versions."""
    budget.exact  # noqa: B018 - a total may be zero, a budget may not: refused before anything is written
    split = Split.of(budget, open_keys=open_keys) if isinstance(budget, EpsilonDelta) else None
    own = {"kind": "genesis", "format": FORMAT, "synthetic": synthetic, "space": random_bytes(16).hex()}
    own |= {name: wire.to_json(value, KINDS) for name, value in (("unit", unit), ("budget", budget), ("split", split))}
    return canonical(told | own | {name: random_bytes(32).hex() for name in SECRETS})


class Debit(NamedTuple):
    """An event on its way into the ledger: its entry says what it costs, and is made of it here alone."""

    event: Event
    plan: str  # digest of what is paid for
    body: str


def debit(event: Event, /, *, plan_digest: str, **told: object) -> Debit:
    """One ask, charged; `told` is what else its entry says: the question, who asked it, and when.

    No two debits are the same entry, also where two copies of a ledger are asked
    the same in the same moment: each has drawn noise of its own, and an anchor
    must tell the one history from the other (T46).
    """
    own = {"kind": "debit", "nonce": random_bytes(16).hex(), "event": wire.to_json(event, KINDS)}
    return Debit(event, plan_digest, canonical(told | own | {"plan_digest": plan_digest}))


def raised(budget: Budget, split: Split | None, *, time: str) -> str:
    """A larger budget."""
    told = {"budget": wire.to_json(budget, KINDS), "split": wire.to_json(split, KINDS)}
    return canonical({"kind": "raise", "time": time} | told)


def parse(row: Row) -> Body:
    """Read an entry's body."""
    try:
        body = wire.strict(row.body)
    except QuestionError:
        raise damaged(f"entry {row.seq}", "is not JSON") from None
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


def read_genesis(body: Mapping[str, object]) -> Genesis:
    """Read the first entry, if this version of sulq knows its format (T91)."""
    if body.get("kind") != "genesis":
        raise damaged("entry 1", "is not the first of a ledger")
    if whole(body, "format") != FORMAT:
        raise SetupError("ledger-format", f"The ledger has format {body['format']}; this sulq knows {FORMAT}.")
    unit = _value(body, "unit")
    if not isinstance(unit, Unit) or not isinstance(body.get("synthetic"), bool):
        raise damaged("entry 1", "does not say whom it protects")
    if unit.column is not None and "fold" not in cast("Body", body["unit"]):  # from before units said who is one person
        unit = dataclasses.replace(unit, fold="spelling")
    budget, split = read_budget(body)
    try:
        receipt_key = bytes.fromhex(text(body, "receipt_key"))
    except ValueError as error:
        raise damaged("entry 1", "has no keys") from error
    return Genesis(unit, budget, split, body["synthetic"] is True, receipt_key)


def read_budget(body: Mapping[str, object]) -> tuple[Budget, Split | None]:
    """Read a budget and how it is divided."""
    budget, split = _value(body, "budget"), _value(body, "split")
    if not isinstance(budget, (Epsilon, Rho, EpsilonDelta, SubLinear)):
        raise damaged("an entry", "has no budget")
    if not (isinstance(split, Split) if isinstance(budget, EpsilonDelta) else split is None):
        raise damaged("an entry", "has a budget that is wrongly divided")
    return budget, split if isinstance(split, Split) else None


def read_burn(body: Mapping[str, object]) -> dict[str, Totals]:
    """Read what was charged for lost asks."""
    losses = body.get("losses")
    if not isinstance(losses, dict):
        raise damaged("an entry", "burns nothing")
    return {analyst: read_totals(loss) for analyst, loss in losses.items()}


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


def _fraction(tree: object) -> Fraction:
    value = tree.get("value") if isinstance(tree, dict) else None
    top, slash, bottom = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not (slash and top.isdecimal() and bottom.isdecimal() and int(bottom)):  # no sign: a loss is never negative
        raise damaged("a debit", "has a loss that is not a number")
    return Fraction(int(top), int(bottom))


def _value(body: Mapping[str, object], name: str) -> object:
    try:
        return wire.from_json(body.get(name), KINDS)
    except (QuestionError, SetupError) as error:
        raise damaged(f"the field {name}", "is not a value of sulq") from error
