"""Free re-answers: which questions are the same, and when a stored answer is as good as a new one (SR12).

All of this looks at questions, laws and losses, which are public, and at answers
that have left the curator already; to give one of them again tells nothing new (T10, T39).
It saves budget and protects nobody: a repeat in other words is charged [S3.7].
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers import wire
from sulq.answers.plan import Plan
from sulq.answers.released import Released
from sulq.language.law import AboveLaw, BinomialLaw, ExponentialLaw, FlipLaw, GaussianLaw, LaplaceLaw, Law, Passed
from sulq.language.privacy import Epsilon, EpsilonDelta, Event, Loss, Queries, Rho
from sulq.language.question import OpenSums, Question, Single, Sums, Together

Tree = dict[str, object]

_MIRRORED: Final = {">": "<", ">=": "<="}
_BUILT: Final = frozenset({dict, list})
_BETAS: Final = tuple(2.0**-k for k in range(1, 65))
SUMMED: Final = (LaplaceLaw, GaussianLaw, BinomialLaw)


def name_of(question: Question, *scope: object) -> str:
    """A digest that two questions share if they are the same question, asked in the same scope.

    Same means: the same sums of the same rows, whatever they hold. Only what is
    proved to be so is looked through: the order and repetition of three-valued
    `and` and `or`, a double negation, a comparison turned round, the order of a
    list of constants, the two sides of + and * (commutative in doubles, to the
    bit), shares that divide a spend alike, the order of values and of questions
    asked together, and one question asked together with no other.
    """
    tree = wire.to_json(question, {})  # what occurs again in it is one tree, and gets its one form once
    return hashlib.sha256(_text([_canonical(tree, {}), wire.to_json(scope)]).encode()).hexdigest()


def order(question: Question) -> list[int]:
    """The places of the questions asked together, in the order in which the same ones elsewhere correspond."""
    return _order(_texts(wire.to_json(question), "questions")) if isinstance(question, Together) else [0]


def rearranged(released: Sequence[Released], stored: Question, asked: Question) -> tuple[Released, ...]:
    """A stored question's releases, and the columns of each, in the order the same question has now."""
    places = dict(zip(order(asked), order(stored), strict=True))
    before, now = _singles(stored), _singles(asked)
    return tuple(_columns(released[places[i]], before[places[i]], now[i]) for i in range(len(released)))


def _singles(question: Question) -> tuple[Single, ...]:
    return question.questions if isinstance(question, Together) else (question,)


def _columns(released: Released, stored: Single, asked: Single) -> Released:
    if not isinstance(stored, (Sums, OpenSums)):
        return released
    first = isinstance(stored, OpenSums)  # the number of people stays in front
    was, now = (_order(_texts(wire.to_json(one), "values")) for one in (stored, asked))
    places = [0] * first + [place + first for _, place in sorted(zip(now, was, strict=True))]
    starts = np.cumsum([0, *(noise.width for noise in released.noise)])
    columns = [column for place in places for column in range(starts[place], starts[place + 1])]
    return replace(released, units=released.units[:, columns], noise=tuple(released.noise[place] for place in places))


def serves(released: Sequence[Released], event: Event, plan: Plan) -> bool:
    """Whether a stored release is at least as accurate as the one a plan would buy.

    Accuracy: every law of its noise is as narrow, at every confidence, on the same
    grid; open keys were shown for at least as much delta, above no higher threshold.
    """
    stored, wanted = [found.noise for found in released], [part.noise for part in plan.parts]
    alike = list(map(len, stored)) == list(map(len, wanted)) and event.key_delta >= plan.event.key_delta
    pairs = zip(itertools.chain(*stored), itertools.chain(*wanted), strict=False)
    return alike and all(
        (have.step, have.width) == (want.step, want.width) and narrower(have.law, want.law) for have, want in pairs
    )


def narrower(law: Law, other: Law) -> bool:
    """Whether a law's noise is nowhere wider than another's: at no confidence from 1/2 to 1 - 2^-64.

    Within one family the scale decides, exactly. Between families of sums a Gaussian
    may stand for a Laplace law of fatter tail; the other way round the tails cross.
    A permute-and-flip choice is as good as an exponential one of its scale [MS20].
    """
    if isinstance(law, SUMMED) and isinstance(other, SUMMED) and type(law) is not type(other):
        return all(law.accuracy(beta) <= other.accuracy(beta) for beta in _BETAS)
    if isinstance(law, BinomialLaw) or isinstance(other, BinomialLaw):
        return isinstance(law, BinomialLaw) and isinstance(other, BinomialLaw) and law.coins <= other.coins
    if isinstance(law, Passed) and isinstance(other, Passed):
        return type(law) is type(other) and law.scale <= other.scale and law.threshold <= other.threshold
    if isinstance(law, (FlipLaw, ExponentialLaw)) and isinstance(other, (FlipLaw, ExponentialLaw)):
        worse = isinstance(law, ExponentialLaw) and isinstance(other, FlipLaw)
        return law.scale <= other.scale and law.candidates == other.candidates and not worse
    if isinstance(law, AboveLaw) and isinstance(other, AboveLaw):
        scales = law.scale <= other.scale and law.threshold_scale <= other.threshold_scale
        return scales and law.sums == other.sums
    return type(law) is type(other) and law.scale <= other.scale


def strength(event: Event) -> tuple[Fraction, Fraction]:
    """What a loss is compared by where several stored answers serve."""
    return (Fraction(0) if event.epsilon is None else event.epsilon, event.rho)


def nothing(spend: Loss) -> Loss:
    """The price of a stored answer, in the currency that was offered."""
    if isinstance(spend, EpsilonDelta):
        return EpsilonDelta.total(Fraction(0), Fraction(0))
    if isinstance(spend, Queries):
        return Queries(0)
    return Rho.total(Fraction(0)) if isinstance(spend, Rho) else Epsilon.total(Fraction(0))


# -- one text for every question that is the same


def _text(tree: object) -> str:
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


def _order(texts: list[str]) -> list[int]:
    return sorted(range(len(texts)), key=lambda i: (texts[i], i))


def _texts(tree: object, name: str) -> list[str]:
    """A text for each question asked together, or each value of one, with its part of the spend."""
    node = tree if isinstance(tree, dict) else {}
    known: dict[int, object] = {}
    return _shared(node, [_canonical(item, known) for item in _items(node, name)])


def _shared(node: Tree, items: list[object]) -> list[str]:
    """A text for each of these items of a node, with its part of the spend."""
    shares = _shares(node, len(items) + (node.get("kind") == "OpenSums"))
    shares = shares[len(shares) - len(items) :]
    return [_text([item, share]) for item, share in zip(items, shares, strict=True)]


def _items(node: Tree, name: str) -> list[object]:
    found = node.get(name)
    return list(found) if isinstance(found, list) else []


def _canonical(tree: object, known: dict[int, object]) -> object:
    """The tree of a question's JSON, from the leaves up, with one form for each meaning, or as `known` by identity."""
    if isinstance(tree, list):
        return tree if _BUILT.isdisjoint(map(type, tree)) else [_canonical(item, known) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if id(tree) not in known:
        known[id(tree)] = _formed(tree, known)
    return known[id(tree)]


def _formed(tree: Tree, known: dict[int, object]) -> object:
    node = {name: _canonical(item, known) for name, item in tree.items()}
    match node.get("kind"):
        case "Sums" | "OpenSums":
            # What the shares leave of the whole is the number of people's, where keys are open.
            return node | {"values": sorted(_shared(tree, _items(node, "values"))), "shares": []}
        case "Choose":  # a score's matrix goes by the order of the values, and the counts have no spend of their own
            counts = tree["counts"] if isinstance(tree["counts"], dict) else {}
            return node | {"counts": {name: _canonical(item, known) for name, item in counts.items()} | {"shares": []}}
        case "Together":
            several = _items(node, "questions")
            if len(several) == 1:
                return several[0]
            return node | {"questions": sorted(_shared(tree, several)), "shares": []}
        case "Logic":
            return _logic(node)
        case "Not":
            inner = node["item"]
            return inner["item"] if isinstance(inner, dict) and inner.get("kind") == "Not" else node
        case "Compare":
            return _compare(node)
        case "IsIn":
            return node | {"values": sorted({_text(value) for value in _items(node, "values")})}
        case "Arith" if node["op"] in ("+", "*"):
            left, right = sorted((node["left"], node["right"]), key=_text)
            return node | {"left": left, "right": right}
    return node


def _logic(node: Tree) -> object:
    """Kleene's `and` and `or` are associative, commutative and idempotent."""
    flat: dict[str, object] = {}
    for item in _items(node, "items"):
        same = isinstance(item, dict) and item.get("kind") == "Logic" and item.get("op") == node["op"]
        flat |= {_text(part): part for part in (_items(item, "items") if same and isinstance(item, dict) else [item])}
    items = [flat[text] for text in sorted(flat)]
    return items[0] if len(items) == 1 else node | {"items": items}


def _compare(node: Tree) -> Tree:
    op, left, right = str(node["op"]), node["left"], node["right"]
    turned = op in _MIRRORED or (op in ("==", "!=") and _text(right) < _text(left))
    if turned:
        left, right = right, left
    return node | {"op": _MIRRORED.get(op, op), "left": left, "right": right}


def _shares(node: Tree, parts: int) -> list[str]:
    """How a spend is divided: each part's share of the whole."""
    given = [Fraction(str(share["value"])) for share in _items(node, "shares") if isinstance(share, dict)]
    whole = sum(given)
    return [str(share / whole) for share in given] or [str(Fraction(1, max(parts, 1)))] * parts
