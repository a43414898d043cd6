"""One canonical, versioned JSON of questions, losses, events, plans and answers.

HTTP bodies, ledger entries and stored answers all use it: a value has one text,
which reads back as a value of the same text, so a digest of it names the value.
Decoding is strict: one text has one meaning or none (T51: duplicate keys, NaN,
wrong kinds refused).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import operator
import types
import typing
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.budget import BudgetLeft
from sulq.answers.plan import Part, Plan, Whole
from sulq.answers.readings.estimators import Estimated, Reading
from sulq.answers.readings.joint import WeightedSum
from sulq.answers.readings.quantiles import Bed
from sulq.answers.readings.sampling import READINGS as SAMPLED
from sulq.answers.released import Noise, Released
from sulq.answers.signed_receipt import SignedReceipt
from sulq.kernel.wire import DEPTH, built, hints, refuse, strict
from sulq.language.domain import COLUMNS, Schema
from sulq.language.estimator import DECLARATIONS, Estimator
from sulq.language.facts import Facts, Heavy, TableFacts
from sulq.language.law import Law
from sulq.language.privacy import Draw, Epsilon, EpsilonDelta, EpsilonKeys, Event, Queries, Rho, Split, SubLinear, Unit
from sulq.language.question import QUESTIONS
from sulq.language.relation import RELATIONS
from sulq.language.rowfn import ROW_FUNCTIONS
from sulq.language.rows_choice import AutoUnit, RowsChoice
from sulq.language.score import SCORES
from sulq.language.shape import DerivedTable, Shape
from sulq.language.space import SPACES
from sulq.language.statistic import STATISTICS, Graph
from sulq.language.tally import Block, Key, Tally

__all__ = ["FORMAT", "Writer", "decode", "digest", "digest_of", "encode", "from_json", "strict", "to_json"]

FORMAT: typing.Final = 1
_FRACTION_TEXT: typing.Final = '{"kind":"fraction","value":"%d/%d"}'
_ARRAYS: typing.Final = {"i": "<i8", "f": "<f8"}
_PLAIN: typing.Final = frozenset({types.NoneType, bool, int, str})  # written as they are
_LEAVES: typing.Final = _PLAIN | {float}  # read as they are
_ROW: typing.Final = frozenset({tuple})
_WHOLE: typing.Final = frozenset({int})
_TEXT: typing.Final = frozenset({str})
_quoted: typing.Final[typing.Callable[[typing.Any], str]] = json.encoder.encode_basestring_ascii
_JSON: typing.Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def encode(value: object) -> str:
    """Write a value of the vocabulary as canonical JSON."""
    return Writer().text(value)


def decode(text: str | bytes) -> object:
    """Read a value of the vocabulary back, or refuse the text."""
    return from_json(strict(text))


def digest(value: object) -> str:
    """Name a value by the SHA-256 of its canonical bytes."""
    return digest_of(encode(value))


def digest_of(text: str) -> str:
    """Name a value by its canonical JSON."""
    return hashlib.sha256(text.encode()).hexdigest()


class Writer:
    """Canonical texts of values that share parts, each part written once: the text that `to_json` would give.

    The same tree or table stands in many values of a question, and again in its plan. A part is known again by its
    identity, so what was written is kept alive; between two texts of one writer nobody may change a part.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str]] = {}

    def text(self, value: object) -> str:
        """A value's canonical JSON."""
        kind: type = type(value)
        if kind is str:
            return _quoted(value)
        if kind in _LEAVES:
            return repr(value) if kind is int else _constants(value)
        if kind is Fraction:
            return _FRACTION_TEXT % typing.cast("Fraction", value).as_integer_ratio()
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._written(value, kind))
        return known[1]

    def _written(self, value: object, kind: type) -> str:
        layout = _layout(kind)
        if layout is not None:
            fields, end = layout
            return "".join([before + self.text(getattr(value, name)) for before, name in fields]) + end
        if kind is not Answers and KINDS.get(kind.__name__) is kind:
            usual, tables = _optional(kind), _tables(kind)
            told = [name for name in hints(kind) if name not in usual or getattr(value, name) != usual[name]]
            made = {name: (self._rows if name in tables else self.text)(getattr(value, name)) for name in told}
            texts = {"kind": _JSON.encode(kind.__name__)} | made
            return f"{{{','.join([f'{_JSON.encode(name)}:{texts[name]}' for name in sorted(texts)])}}}"
        if kind is tuple or kind is list:
            items = typing.cast("typing.Sequence[object]", value)
            return _constants(items) if _constant(items) else f"[{','.join(map(self.text, items))}]"
        return _JSON.encode(to_json(value))

    def _rows(self, found: tuple[tuple[object, ...], ...] | None) -> str:
        """The text of a table's rows, from its columns."""
        if found is None:
            return "null"
        plain = [_TEXT.issuperset(map(type, cells)) for cells in found]
        texts = [map(_quoted if one else self.text, cells) for one, cells in zip(plain, found, strict=True)]
        rows = "],[".join(map(",".join, zip(*texts, strict=True)))
        return f"[[{rows}]]" if rows else "[]"


def _constant(items: typing.Sequence[object]) -> bool:
    """Whether there is nothing but constants, or rows of constants: those are written all at once."""
    kinds = set(map(type, items))
    if kinds == _ROW:
        kinds = set(map(type, itertools.chain.from_iterable(typing.cast("typing.Iterable[tuple[object]]", items))))
    return kinds <= _LEAVES


def _table(items: tuple[object, ...]) -> bool:
    """Whether there is nothing but rows of whole numbers."""
    return set(map(type, items)) == _ROW and _WHOLE.issuperset(
        map(type, itertools.chain.from_iterable(typing.cast("typing.Iterable[tuple[object]]", items)))
    )


def _constants(value: object) -> str:
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    try:
        return _JSON.encode(value)
    except ValueError as error:
        raise refuse("a number is not finite") from error


@functools.cache
def _optional(cls: type) -> dict[str, object]:
    """Fields that are written only where they say something: texts from before they were there keep their digests."""
    return {f.name: f.default for f in dataclasses.fields(cls) if f.metadata.get("wire") == "set"}


@functools.cache
def _tables(cls: type) -> frozenset[str]:
    """Fields that hold a table by columns and are written row by row, as texts always had them."""
    return frozenset(f.name for f in dataclasses.fields(cls) if f.metadata.get("wire") == "rows")


def _columns(rows: object) -> object:
    """A table's columns from its rows; what is no table as it is."""
    if not isinstance(rows, tuple) or not rows or not _ROW.issuperset(map(type, rows)):
        return rows
    width = len(rows[0])
    if not width or set(map(len, rows)) != {width}:
        raise refuse("the rows of a table differ in length, or are empty")
    return tuple(tuple(map(operator.itemgetter(i), rows)) for i in range(width))


@functools.cache
def _layout(cls: type) -> tuple[tuple[tuple[str, str], ...], str] | None:
    """What stands in the text of every value of a kind: before each of its fields, in their order, and at the end.

    None where not all its values are written with the same fields.
    """
    if cls is Answers or KINDS.get(cls.__name__) is not cls or _optional(cls) or _tables(cls):
        return None
    fields: list[tuple[str, str]] = []
    before = "{"
    for name in sorted(("kind", *hints(cls))):
        if name == "kind":
            before += f'"kind":{_JSON.encode(cls.__name__)},'
        else:
            fields.append((f"{before}{_JSON.encode(name)}:", name))
            before = ","
    return tuple(fields), before.removesuffix(",") + "}"


def to_json(value: object, known: dict[int, object] | None = None) -> object:
    """Turn a value into the tree of its JSON; with `known`, of a part that occurs again the same tree again.

    With `known` a table of whole numbers stands in the tree as it is, not as lists.
    """
    kind: type = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple and _PLAIN.issuperset(map(type, typing.cast("tuple[object, ...]", value))):
        return list(typing.cast("tuple[object, ...]", value))
    if kind is float:
        return _finite_number(typing.cast("float", value))
    if kind is Fraction:
        number = typing.cast("Fraction", value)
        return {"kind": "fraction", "value": f"{number.numerator}/{number.denominator}"}
    if kind is Answers:
        return {"kind": "Answers", "answers": _together(typing.cast("Answers", value).answers)}
    if KINDS.get(kind.__name__) is kind:
        if known is not None and id(value) in known:
            return known[id(value)]
        tree: dict[str, object] = {"kind": kind.__name__}
        usual = _optional(kind)
        for name in hints(kind):
            if name not in usual or getattr(value, name) != usual[name]:
                found = getattr(value, name)
                turned = found is not None and name in _tables(kind)
                tree[name] = to_json(tuple(zip(*found, strict=True)) if turned else found, known)
        if known is not None:
            known[id(value)] = tree
        return tree
    if known is not None and kind is tuple and _table(typing.cast("tuple[object, ...]", value)):
        return value  # written as lists are; of a table's numbers none is looked at again
    if kind is tuple or isinstance(value, (tuple, list)):
        return _listed(typing.cast("typing.Sequence[object]", value), known)
    return _number(value)


def _listed(items: typing.Sequence[object], known: dict[int, object] | None) -> list[object]:
    """The trees of items; rows of constants, as are the labels of many groups, all at once."""
    if _ROW.issuperset(map(type, items)):
        rows = typing.cast("typing.Sequence[tuple[object, ...]]", items)
        if _PLAIN.issuperset(map(type, itertools.chain.from_iterable(rows))):
            return list(map(list, rows))
    return [item if type(item) in _PLAIN else to_json(item, known) for item in items]


def _together(answers: tuple[Answer, ...]) -> list[object]:
    """Answers to questions asked together: the first says what all of them cost, the others only if it is not that.

    The event lists a draw for each question, so that a text that repeated it would grow with their square.
    """
    found = [typing.cast("dict[str, object]", to_json(answer)) for answer in answers[:1]]
    for answer in answers[1:]:
        event = answers[0].event
        same = answer.event is event or answer.event == event
        tree: dict[str, object] = {"kind": "Answer"}
        usual = _optional(Answer)
        for name in hints(Answer):
            if not (same and name == "event") and (name not in usual or getattr(answer, name) != usual[name]):
                tree[name] = to_json(getattr(answer, name))
        found.append(tree)
    return list(found)


def _finite_number(value: float) -> float:
    if not math.isfinite(value):
        raise refuse("a number is not finite")
    return value


def _number(value: object) -> object:
    """The tree of what is neither of the vocabulary nor put together: numbers, arrays, and nothing else."""
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _finite_number(value)
    if isinstance(value, (Fraction, Decimal)):
        number = Fraction(value)
        return {"kind": "fraction", "value": f"{number.numerator}/{number.denominator}"}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _ARRAYS or not np.isfinite(value).all():
            raise refuse("an array holds finite numbers")
        return {"kind": "array", "shape": list(value.shape), "type": value.dtype.kind, "values": value.ravel().tolist()}
    raise refuse(f"a {type(value).__name__} has no place on the wire")


def from_json(tree: object, depth: int = 0) -> object:
    """Build the value a JSON tree stands for, checking each field against its declared kind."""
    if depth > DEPTH:
        raise refuse("the value is nested too deeply")
    if isinstance(tree, list):
        if _LEAVES.issuperset(map(type, tree)):
            return tuple(tree)
        return tuple([item if type(item) in _LEAVES else from_json(item, depth + 1) for item in tree])
    if not isinstance(tree, dict):
        return tree
    kind = tree.get("kind")
    if kind == "Answers":
        tree = _apart(tree, depth)
    given = {
        name: item if type(item) in _LEAVES else from_json(item, depth + 1)
        for name, item in tree.items()
        if name != "kind"
    }
    if kind == "array":
        return _array(given)
    if kind == "Released":
        given |= {name: _columns(given[name]) for name in _tables(Released) & given.keys()}
    return built(kind, given, KINDS)


def _apart(tree: dict[str, object], depth: int) -> dict[str, object]:
    """Give each of several answers what the first one cost, where it does not say; the value itself, read once."""
    several = tree.get("answers")
    if not isinstance(several, list) or not several:
        return tree
    first = from_json(several[0], depth + 2)
    if not isinstance(first, Answer):
        return tree
    rest = [
        {**item, "event": first.event} if isinstance(item, dict) and "event" not in item else item
        for item in several[1:]
    ]
    return {**tree, "answers": [first, *rest]}


def _array(given: dict[str, object]) -> npt.NDArray[np.generic]:
    shape, kind, values = given.get("shape"), given.get("type"), given.get("values")
    known = isinstance(kind, str) and kind in _ARRAYS and set(given) == {"shape", "type", "values"}
    if not known or not isinstance(shape, tuple) or not isinstance(values, tuple):
        raise refuse("an array has the fields shape, type and values")
    if not ({int} if kind == "i" else {int, float}).issuperset(map(type, values)):
        raise refuse("an array holds numbers")
    sizes = [n for n in shape if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    if len(sizes) != len(shape) or math.prod(sizes) != len(values):
        raise refuse("an array's shape and values differ")
    try:
        return np.array(values, dtype=_ARRAYS[str(kind)]).reshape(sizes)
    except (ValueError, OverflowError) as error:
        raise refuse("an array is out of range") from error


LOSSES: Final = (Epsilon, EpsilonDelta, EpsilonKeys, Queries, Rho, SubLinear)
EVENTS: Final = (AutoUnit, Draw, Event, Receipt, RowsChoice, SignedReceipt, Split, Unit)
LAWS: Final = typing.get_args(Law)
HOLISTIC: Final = (*DECLARATIONS, Estimator, Graph, Whole, *SPACES, *STATISTICS)
TABLES: Final = (DerivedTable, Facts, Heavy, Schema, Shape, TableFacts)
PLANS: Final = (*TABLES, Block, Key, Part, Plan, Tally, *RELATIONS, *SCORES, *HOLISTIC)
# Estimates from reports are read where the reports are, and travel in no answer.
READINGS: Final = (*(cls for cls in typing.get_args(Reading) if cls is not Estimated), *SAMPLED, WeightedSum)
ANSWERS: Final = (Answer, Answers, Bed, BudgetLeft, Noise, Released, *READINGS)

KINDS: Final[dict[str, type]] = {
    cls.__name__: cls for cls in (*LOSSES, *EVENTS, *LAWS, *PLANS, *ANSWERS, *COLUMNS, *QUESTIONS, *ROW_FUNCTIONS)
}
