"""A ledger's first entry and raises of its budget: how they are written, and if they are what an owner declares."""

from __future__ import annotations

import hashlib
import hmac
import platform
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, cast

import apsw

from sulq.curator.ledger import notes
from sulq.errors import SetupError
from sulq.kernel import wire
from sulq.kernel.entropy import random_bytes
from sulq.kernel.facts import conversion_cost
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import canonical
from sulq.kernel.ledger.entries import Body, State
from sulq.kernel.ledger.store import damaged
from sulq.language.privacy import Budget, EpsilonDelta, Split, SubLinear, Unit, divided
from sulq.version import __version__

LENGTH = 32  # bytes of a key
SECRETS = ("hash_key", "receipt_key", "signing_key")


class Founding(NamedTuple):
    """What was fixed when the person space was created."""

    space: str
    hash_key: bytes  # picks a heavy person's kept rows (SR2)
    receipt_key: bytes  # what names of sources, and keys of the first ledgers, follow from
    signing_key: bytes  # the secret half of what receipts and anchors are signed with
    implied: bool  # begun before a unit said which ids are one person: it folds them by spelling


def versions() -> dict[str, str]:
    """With what a ledger is begun."""
    return {"apsw": apsw.apsw_version(), "python": platform.python_version(), "sulq": __version__}


def genesis(unit: Unit, budget: Budget, /, *, open_keys: bool, synthetic: bool, **told: object) -> str:
    """Begin a person space; `told` is what else its entry says: when, and with which versions."""
    budget.exact  # noqa: B018 - a total may be zero, a budget may not: refused before anything is written
    split = divided(budget, open_keys=open_keys) if isinstance(budget, EpsilonDelta) else None
    own = {"kind": "genesis", "format": entries.FORMAT, "synthetic": synthetic, "space": random_bytes(16).hex()}
    own |= {"unit": wire.to_json(unit, entries.KINDS)} | _divided(budget, split)
    return canonical(told | own | {name: random_bytes(LENGTH).hex() for name in SECRETS})


def raised(budget: Budget, split: Split | None, *, time: str) -> str:
    """A larger budget."""
    return canonical({"kind": "raise", "time": time} | _divided(budget, split))


def widened(split: Split, budget: EpsilonDelta) -> Split:
    """The division of a raised budget: the same order and shares of delta, so all that was counted keeps its meaning.

    The kernel takes no more of it than follows from the order and the delta, and no other order.
    """
    keys = budget.exact_delta * split.key_delta / (split.delta + split.key_delta)
    delta = budget.exact_delta - keys
    room = Fraction(float(budget.exact) - conversion_cost(float(split.alpha), float(delta)))
    return Split(split.alpha, max(room, split.room), delta, keys)


def _divided(budget: Budget, split: Split | None) -> Body:
    return {"budget": wire.to_json(budget, entries.KINDS), "split": wire.to_json(split, entries.KINDS)}


def read_founding(body: Body) -> Founding:
    """Read the first entry."""
    try:
        hash_key, receipt_key = (bytes.fromhex(notes.text(body, name)) for name in ("hash_key", "receipt_key"))
        # The first ledgers of format 1 were begun without one: theirs follows from the key of their receipts.
        signing_key = bytes.fromhex(notes.optional(body, "signing_key") or _signing_key(receipt_key))
    except ValueError as error:
        raise damaged("entry 1", "has no keys") from error
    if len(signing_key) != LENGTH:
        raise damaged("entry 1", "has no keys")
    implied = "fold" not in cast("Body", body["unit"])
    return Founding(notes.text(body, "space"), hash_key, receipt_key, signing_key, implied)


def compare(
    state: State, founding: Founding, *, unit: Unit | None, budget: Budget | None, synthetic: bool | None
) -> None:
    """Refuse declarations that differ from the ledger's own: the ledger holds the truth (T56)."""
    own = state.genesis
    if unit is not None and unit.fold is None and founding.implied and unit.column is not None:
        unit = replace(unit, fold=own.unit.fold)  # who says nothing of ids means what the ledger has always done
    if unit is not None and unit != own.unit:
        raise SetupError("unit-mismatch", f"The ledger protects {own.unit}; it was opened for {unit}.")
    if budget is not None and budget != state.filter.budget:
        raise SetupError("budget-mismatch", f"The ledger's budget is {state.filter.budget}, not {budget}.")
    if synthetic is not None and synthetic != own.synthetic:
        kind = "synthetic" if own.synthetic else "private"
        raise SetupError("synthetic-mismatch", f"The ledger was created for {kind} data.")


def refuse_lowered(own: Budget, budget: Budget) -> None:
    """Say why a budget cannot be raised to another, as the kernel would refuse it."""
    if type(own) is not type(budget):
        raise SetupError("budget-mismatch", f"A budget of {own} cannot become one of {budget}.", "Keep its kind.")
    if isinstance(own, SubLinear) and budget != own:
        raise SetupError(
            "budget-mismatch",
            "A SubLinear budget cannot be raised: the noise of every answer was fixed by its number of queries.",
            "Begin a new person space, or ask under another budget from the start.",
        )
    if _lowered(own, budget):
        raise SetupError("budget-mismatch", f"A budget is never lowered: {own} to {budget}.", "Raise it or leave it.")


def _lowered(own: Budget, budget: Budget) -> bool:
    """Whether a budget is lower than our own in any part."""
    delta = isinstance(own, EpsilonDelta) and isinstance(budget, EpsilonDelta) and budget.exact_delta < own.exact_delta
    return delta or budget.exact < own.exact


def _signing_key(receipt_key: bytes) -> str:
    return hmac.new(receipt_key, b"sulq: signing key", hashlib.sha256).hexdigest()
