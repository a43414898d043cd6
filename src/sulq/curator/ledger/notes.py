"""What an entry notes besides what was spent: bodies as canonical JSON, signatures, idempotency keys, the first entry.

register  data under a name; advances the public version
answer    what was answered to a debit
share     what one analyst may spend, and what is kept for it
anchor    where the head is noted outside the ledger from here on
burn      a charge for asks the ledger has lost, which the kernel reads
cover     a private source whose people it protects (registry.py)
checkpoint  what all entries before it come to (checkpoints.py)

A signature is checked with the ledger's public key alone.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import hmac
import json
import platform
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, NamedTuple, cast

import apsw
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sulq.answers import wire
from sulq.curator.ledger.shares import Share
from sulq.errors import QuestionError, SetupError
from sulq.kernel import wire as kernel_wire
from sulq.kernel.entropy import random_bytes
from sulq.kernel.facts import conversion_cost
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import canonical
from sulq.kernel.ledger.entries import TOTALS, Body, State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import damaged
from sulq.language.estimator import Estimator
from sulq.language.privacy import (
    Budget,
    EpsilonDelta,
    Event,
    Split,
    SubLinear,
    Unit,
    basic_part,
    delta_share_of,
    divided,
    key_part,
)
from sulq.language.rows_choice import AutoUnit, RowsChoice
from sulq.version import __version__

KEY_BYTES: Final = 32  # of either half of a key
LISTS: Final = ("looked", "erased")  # fields of a registration that are lists of texts, written where they hold any
MAX_KNOWN_EVENTS: Final = 1024  # that are not read again where another debit says the same


class Signer:
    """Signs with a ledger's own key (Ed25519, RFC 8032); `public` is what checks it."""

    __slots__ = ("_key", "public")

    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """The signature of a message, in hexadecimal."""
        return self._key.sign(message).hex()


def signed(message: bytes, signature: str, public: str) -> bool:
    """Whether a signature is of this message and by this key; of what is no signature or key it is not."""
    if signature != signature.lower() or public != public.lower():  # one spelling each
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


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
    `choice`: how many rows of a person are kept from here on, and the paid release that it follows from (SR28).
    `looked`: what of it was declared after its owner looked at exact counts over the rows (SR28).
    `erased`: keyed digests of persons whose rows are left out from here on, whether they have any or not.
    """

    name: str
    declarations: str
    size: int | None
    source: str
    public: bool = False
    estimators: tuple[Estimator, ...] = ()
    choice: RowsChoice | None = None
    looked: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()


def registered(data: Registration, *, time: str) -> str:
    """Data under a name, as the owner registered it."""
    return canonical({"kind": "register", "time": time} | registration_tree(data))


def registration_tree(data: Registration) -> Body:
    """What is registered, to be written."""
    told = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    own = [wire.to_json(item) for item in told.pop("estimators")]
    choice = wire.to_json(told.pop("choice"))
    lists = {name: list(found) for name in LISTS if (found := told.pop(name))}
    more = ({"estimators": own} if own else {}) | ({"choice": choice} if choice else {})
    return told | more | lists


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
    """Sums, to be written; a delta only where there is one: what was signed before there were any reads the same."""
    return {name: getattr(totals, name) for name in TOTALS if name != "delta" or totals.delta}


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
    choice = _value(body, "choice") if "choice" in body else None
    if not isinstance(choice, RowsChoice | None):
        raise damaged("the field choice", "is no choice of rows")
    return Registration(
        name, declared, size, source, public, _estimators(body), choice, *(_list(body, field) for field in LISTS)
    )


def _list(body: Body, name: str) -> tuple[str, ...]:
    found = body.get(name, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise damaged(f"the field {name}", "is no list of texts")
    return tuple(found)


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
    """Read a debit's event whole; most ask at a price that was asked at shortly before, in the same words."""
    try:
        event = _event(json.dumps(body.get("event")))
    except (QuestionError, SetupError) as error:
        raise damaged("the field event", "is not a value of sulq") from error
    if not isinstance(event, Event):
        raise damaged("a debit", "has no event")
    return event


_event = functools.lru_cache(MAX_KNOWN_EVENTS)(wire.decode)  # events are frozen


def _value(body: Body, name: str) -> object:
    try:
        return wire.from_json(body.get(name))
    except (QuestionError, SetupError) as error:
        raise damaged(f"the field {name}", "is not a value of sulq") from error


MAX_KEY_CHARACTERS: Final = 200
Name = str | tuple[str, str]  # a key, or an analyst and a key


@dataclass(frozen=True, slots=True)
class Claim:
    """A key whose answer is on its way."""

    question: str
    settled: threading.Event = field(default_factory=threading.Event)


def check_key(key: object) -> None:
    """Refuse what is no idempotency key."""
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY_CHARACTERS or not key.isprintable():
        raise QuestionError(
            "bad-question", f"An idempotency key is text of 1 to {MAX_KEY_CHARACTERS} printable characters."
        )


class Keys:
    """The keys this process is answering at the moment; each analyst's are apart from all others'."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._lock = threading.Lock()
        self._claims: dict[Name, Claim] = {}

    def claim(self, key: Name, question: str) -> None:
        """Be the one thread that asks with this key, after any other has its answer."""
        deadline = time.monotonic() + self._wait
        while True:
            with self._lock:
                other = self._claims.setdefault(key, mine := Claim(question))
            if other is mine:
                return
            if other.question != question:
                raise QuestionError("key-reused", "This idempotency key was used for another question.")
            if not other.settled.wait(max(deadline - time.monotonic(), 0.0)):
                raise QuestionError("answer-lost", "The first ask with this idempotency key has no answer yet.")

    def settle(self, key: Name | None) -> None:
        """Let the next thread with this key go on: an answer was kept, or there will be none."""
        with self._lock:
            claim = self._claims.pop(key, None) if key is not None else None
        if claim is not None:
            claim.settled.set()


SECRETS = ("hash_key", "receipt_key", "signing_key")


class Founding(NamedTuple):
    """What was fixed when the person space was created."""

    space: str
    hash_key: bytes  # picks a heavy person's kept rows (SR2)
    receipt_key: bytes  # what names of sources, and keys of the first ledgers, follow from
    signing_key: bytes  # the secret half of what receipts and anchors are signed with
    implied: bool  # begun before a unit said which ids are one person: it folds them by spelling
    histogram_share: Fraction | None = None  # where the number of rows is chosen: of the budget, for its histogram


def versions() -> dict[str, str]:
    """With what a ledger is begun."""
    return {"apsw": apsw.apsw_version(), "python": platform.python_version(), "sulq": __version__}


def genesis(
    unit: Unit,
    budget: Budget,
    /,
    *,
    open_keys: bool,
    synthetic: bool,
    basic: Fraction | None = None,
    keys: Fraction | None = None,
    **told: object,
) -> str:
    """Begin a person space; `told` is what else its entry says: when, and with which versions.

    `basic`, `keys`: the parts of an EpsilonDelta budget's delta for basic composition and for open keys; None is the
    default.
    """
    budget.exact  # noqa: B018 - a total may be zero, a budget may not: refused before anything is written
    basic, keys = delta_share_of("basic_share", basic, budget), delta_share_of("key_share", keys, budget)
    split = None
    if isinstance(budget, EpsilonDelta):
        split = divided(budget, open_keys=open_keys, basic=basic, keys=keys)
    own: Body = {"kind": "genesis", "format": entries.FORMAT, "synthetic": synthetic, "space": random_bytes(16).hex()}
    if isinstance(unit, AutoUnit):
        own, unit = own | {"histogram_share": wire.to_json(unit.share)}, unit.widest
    own |= {"unit": kernel_wire.to_json(unit, entries.KINDS)} | divided_tree(budget, split)
    return canonical(told | own | {name: random_bytes(KEY_BYTES).hex() for name in SECRETS})


def raised(budget: Budget, split: Split | None, *, time: str) -> str:
    """A larger budget."""
    return canonical({"kind": "raise", "time": time} | divided_tree(budget, split))


def widened(split: Split, budget: EpsilonDelta) -> Split:
    """The division of a raised budget: the same order and shares of delta, so all that was counted keeps its meaning.

    The kernel takes no more of it than follows from the order and the delta, and no other order.
    """
    grown = budget.exact_delta / (split.delta + split.key_delta + split.basic_delta)
    delta, keys, basic = (share * grown for share in (split.delta, split.key_delta, split.basic_delta))
    room = Fraction(float(budget.exact) - conversion_cost(float(split.alpha), float(delta)))
    return Split(split.alpha, max(room, split.room), delta, keys, basic)


def divided_tree(budget: Budget, split: Split | None) -> Body:
    """A budget and how it is divided, to be written."""
    return {"budget": kernel_wire.to_json(budget, entries.KINDS), "split": kernel_wire.to_json(split, entries.KINDS)}


def read_founding(body: Body) -> Founding:
    """Read the first entry."""
    try:
        hash_key, receipt_key = (bytes.fromhex(text(body, name)) for name in ("hash_key", "receipt_key"))
        # The first ledgers of format 1 were begun without one: theirs follows from the key of their receipts.
        signing_key = bytes.fromhex(optional(body, "signing_key") or _signing_key(receipt_key))
    except ValueError as error:
        raise damaged("entry 1", "has no keys") from error
    if len(signing_key) != KEY_BYTES:
        raise damaged("entry 1", "has no keys")
    implied = "fold" not in cast("Body", body["unit"])
    share = _value(body, "histogram_share") if "histogram_share" in body else None
    if not isinstance(share, Fraction | None):
        raise damaged("entry 1", "has a share that is not a number")
    return Founding(text(body, "space"), hash_key, receipt_key, signing_key, implied, share)


def compare(
    state: State,
    founding: Founding,
    *,
    unit: Unit | None,
    budget: Budget | None,
    synthetic: bool | None,
    basic: Fraction | None = None,
    keys: Fraction | None = None,
    choice: RowsChoice | None = None,
) -> None:
    """Refuse declarations that differ from the ledger's own, with the rows of its `choice`: it is the truth (T56)."""
    own = state.genesis
    if unit is not None and unit.fold is None and founding.implied and unit.column is not None:
        unit = replace(unit, fold=own.unit.fold)  # who says nothing of ids means what the ledger has always done
    protected = own.unit if choice is None else replace(own.unit, rows=choice.rows)
    if founding.histogram_share is not None:
        if isinstance(unit, AutoUnit) and unit.fits(protected):
            if (unit.rows, unit.share) != (own.unit.rows, founding.histogram_share):
                begun = f"most={own.unit.rows}, share={float(founding.histogram_share):.9g}"
                raise SetupError(
                    "unit-mismatch",
                    f"The ledger was begun with {begun}; it was opened with most={unit.rows}, "
                    f"share={float(unit.share):.9g}.",
                    f'Write rows="auto", {begun}: what the number of rows is chosen by is fixed when it is begun.',
                )
            unit = protected  # the ledger's own maximum, or the number that was chosen
        elif unit is not None and choice is None:
            why = "How many rows of a person this ledger keeps is not chosen yet."
            raise SetupError("unit-mismatch", why, 'Open it with rows="auto", as it was begun.')
    if unit is not None and unit != protected:
        raise SetupError("unit-mismatch", f"The ledger protects {protected}; it was opened for {unit}.")
    if budget is not None and budget != state.filter.budget:
        raise SetupError("budget-mismatch", f"The ledger's budget is {state.filter.budget}, not {budget}.")
    if synthetic is not None and synthetic != own.synthetic:
        kind = "synthetic" if own.synthetic else "private"
        raise SetupError("synthetic-mismatch", f"The ledger was created for {kind} data.")
    for name, told, part_of in (("basic_share", basic, basic_part), ("key_share", keys, key_part)):
        part, split = delta_share_of(name, told, state.filter.budget), state.filter.split
        if part is not None and split is not None and part != part_of(split):
            raise SetupError(
                "budget-mismatch",
                f"The ledger was begun with {name} {float(part_of(split)):.9g}, not {float(part):.9g}.",
                f"Leave {name} out, or name the ledger's own: how delta is divided is fixed when the ledger is begun.",
            )


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
