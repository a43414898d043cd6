"""Strict JSON of the kernel's values: the same text as the vocabulary's, and one meaning or none."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from sulq.answers import wire as whole
from sulq.errors import SulqError
from sulq.kernel import wire
from sulq.kernel.facts import Draw, Epsilon, EpsilonDelta, Event, Rho, SubLinear, Unit
from sulq.kernel.ledger.entries import KINDS
from sulq.language.privacy import divided

DRAW = Draw("passed", "add_remove", "l2", Fraction(9), Fraction(7, 2), Fraction(1, 4), 0, threshold=30, alone=3)
VALUES = [
    Unit("id", 3, "replace_one"), Unit(), Epsilon(0.1), Epsilon(Fraction(1, 3)), Rho(2), EpsilonDelta(2, 1e-6),
    SubLinear(1, 1e-6, 9, "dp"), divided(EpsilonDelta(2, 1e-6), open_keys=True), DRAW,
    Event(None, Fraction(1, 7), Fraction(1, 10**9), 0, (DRAW, DRAW), (("numpy", "2"), ("sulq", "0"))),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_has_the_text_the_vocabulary_gives_it(value: object) -> None:
    """So ledgers of before read back, and digests stay what they were; a kind that is not listed has no text."""
    tree = wire.to_json(value, KINDS)
    assert tree == whole.to_json(value)
    assert wire.from_json(json.loads(json.dumps(tree)), KINDS) == whole.from_json(tree) == value
    for refused in (lambda: wire.to_json(value, {}), lambda: wire.from_json(tree, {})):
        with pytest.raises(SulqError):
            refused()


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "Epsilon"}, {"kind": "Epsilon", "epsilon": 1, "rho": 2}, {"kind": "Epsilon", "epsilon": True},
        {"kind": "Epsilon", "epsilon": "1"}, {"kind": "Unit", "rows": 2.0}, {"kind": "Nothing"}, {"epsilon": 1},
        {"kind": "fraction", "value": "1/0"}, {"kind": "fraction", "value": "0.1"}, {"kind": ["Epsilon"]},
        {"kind": "Unit", "neighbors": "nobody"}, {"kind": "Event", "epsilon": None, "rho": 1}, [[[{"kind": 1}]]],
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused_T51(tree: object) -> None:
    """T51: missing, further and wrong fields, unknown kinds, numbers that are none; nothing is guessed."""
    with pytest.raises(SulqError):
        wire.from_json(tree, KINDS)


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"a":NaN}', "1e999", "[" * 10**5, b"\xff", "{"])
def test_a_text_has_one_meaning_or_none_T51(text: str | bytes) -> None:
    """T51: duplicate keys, NaN, numbers out of range, bottomless nesting, other encodings. Control: plain JSON."""
    with pytest.raises(SulqError):
        wire.strict(text)
    assert wire.strict('{"a":[1,2.5,null]}') == {"a": [1, 2.5, None]}


def test_nesting_has_a_bottom_T51() -> None:
    """T51: a value nested past the limit is refused before it is built."""
    deep: object = 1
    for _ in range(wire.DEPTH + 2):
        deep = [deep]
    with pytest.raises(SulqError):
        wire.from_json(deep, KINDS)
