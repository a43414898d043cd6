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
import re
import types
import typing
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.terms import vocabulary
from sulq.terms.answer import Answer, Answers

FORMAT: typing.Final = 1
DEPTH: typing.Final = 200
_FRACTION: typing.Final = re.compile(r"-?[0-9]{1,400}/[1-9][0-9]{0,399}")
_FRACTION_TEXT: typing.Final = '{"kind":"fraction","value":"%d/%d"}'
_ARRAYS: typing.Final = {"i": "<i8", "f": "<f8"}
_PLAIN: typing.Final = frozenset({types.NoneType, bool, int, str})  # written as they are
_LEAVES: typing.Final = _PLAIN | {float}  # read as they are
_ROW: typing.Final = frozenset({tuple})
_WHOLE: typing.Final = frozenset({int})
_JSON: typing.Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)

Test = typing.Callable[[object], bool]


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


def strict(text: str | bytes) -> object:
    """Parse JSON that has one meaning: no duplicate keys, no NaN, no bottomless nesting."""
    try:
        plain = text if isinstance(text, str) else text.decode("utf-8")  # json would guess at UTF-16 and UTF-32
        return json.loads(plain, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise _refuse("the text is not strict JSON") from error


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
        if kind in _LEAVES:
            return repr(value) if kind is int else _constants(value)
        if kind is Fraction:
            return _FRACTION_TEXT % typing.cast("Fraction", value).as_integer_ratio()
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._written(value, kind))
        return known[1]

    def _written(self, value: object, kind: type) -> str:
        if kind is not Answers and vocabulary.KINDS.get(kind.__name__) is kind and not _optional(kind):
            fields, end = _layout(kind)
            return "".join([before + self.text(getattr(value, name)) for before, name in fields]) + end
        if kind is tuple or kind is list:
            items = typing.cast("typing.Sequence[object]", value)
            return _constants(items) if _constant(items) else f"[{','.join(map(self.text, items))}]"
        return _JSON.encode(to_json(value))


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
    try:
        return _JSON.encode(value)
    except ValueError as error:
        raise _refuse("a number is not finite") from error


@functools.cache
def _layout(cls: type) -> tuple[tuple[tuple[str, str], ...], str]:
    """What stands in the text of every value of a kind: before each of its fields, in their order, and at the end."""
    fields: list[tuple[str, str]] = []
    before = "{"
    for name in sorted(("kind", *_hints(cls))):
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
    if vocabulary.KINDS.get(kind.__name__) is kind:
        if known is not None and id(value) in known:
            return known[id(value)]
        tree: dict[str, object] = {"kind": kind.__name__}
        usual = _optional(kind)
        for name in _hints(kind):
            if name not in usual or getattr(value, name) != usual[name]:
                tree[name] = to_json(getattr(value, name), known)
        if known is not None:
            known[id(value)] = tree
        return tree
    if known is not None and kind is tuple and _table(typing.cast("tuple[object, ...]", value)):
        return value  # written as lists are; of a table's numbers none is looked at again
    if kind is tuple or isinstance(value, (tuple, list)):
        items = typing.cast("typing.Iterable[object]", value)
        return [item if type(item) in _PLAIN else to_json(item, known) for item in items]
    return _number(value)


def _together(answers: tuple[Answer, ...]) -> list[object]:
    """Answers to questions asked together: the first says what all of them cost, the others only if it is not that.

    The event lists a draw for each question, so that a text that repeated it would grow with their square.
    """
    found = [typing.cast("dict[str, object]", to_json(answer)) for answer in answers[:1]]
    for answer in answers[1:]:
        event = answers[0].event
        same = answer.event is event or answer.event == event
        tree: dict[str, object] = {"kind": "Answer"}
        for name in _hints(Answer):
            if not (same and name == "event"):
                tree[name] = to_json(getattr(answer, name))
        found.append(tree)
    return list(found)


def _finite_number(value: float) -> float:
    if not math.isfinite(value):
        raise _refuse("a number is not finite")
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
            raise _refuse("an array holds finite numbers")
        return {"kind": "array", "shape": list(value.shape), "type": value.dtype.kind, "values": value.ravel().tolist()}
    raise _refuse(f"a {type(value).__name__} has no place on the wire")


def from_json(tree: object, depth: int = 0) -> object:
    """Build the value a JSON tree stands for, checking each field against its declared kind."""
    if depth > DEPTH:
        raise _refuse("the value is nested too deeply")
    if isinstance(tree, list):
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
    if kind == "fraction":
        return _fraction(given)
    if kind == "array":
        return _array(given)
    cls = vocabulary.KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise _refuse(f"unknown kind {str(kind)[:40]!r}")
    tests, required = _tests(cls)
    if not required <= given.keys() <= tests.keys():
        raise _refuse(f"a {kind} has the fields {', '.join(tests)}")
    for name, item in given.items():
        if not tests[name](item):
            raise _refuse(f"the field {name} of a {kind} is of the wrong kind")
    return cls(**given)


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


@functools.cache
def _hints(cls: type) -> dict[str, object]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.metadata.get("wire", True)}


@functools.cache
def _optional(cls: type) -> dict[str, object]:
    """Fields that are written only where they say something: texts from before they were there keep their digests."""
    return {f.name: f.default for f in dataclasses.fields(cls) if f.metadata.get("wire") == "set"}


@functools.cache
def _tests(cls: type) -> tuple[dict[str, Test], frozenset[str]]:
    """What each field of a kind must pass, and the fields that may not be left out; worked out once a kind."""
    required = {f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is dataclasses.MISSING}
    return {name: _test(hint) for name, hint in _hints(cls).items()}, frozenset(required)


def _test(hint: object) -> Test:
    """Whether a value is of an annotated kind (the annotations the vocabulary uses)."""
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        plain = [types.NoneType if option is None else option for option in args]
        if all(isinstance(option, type) and typing.get_origin(option) is None for option in plain):
            return _plain(*typing.cast("list[type]", plain))
        several = tuple(map(_test, args))
        return lambda value: any(test(value) for test in several)
    if origin is typing.Literal:
        return lambda value: isinstance(value, str) and value in args
    if origin is tuple:
        return _tuple(args)
    if origin is np.ndarray:
        (number,) = typing.get_args(args[1])
        return lambda value: isinstance(value, np.ndarray) and value.dtype == np.dtype(number)
    if hint is None:
        return lambda value: value is None
    return _plain(hint) if isinstance(hint, type) else lambda _: False


def _plain(*kinds: type) -> Test:
    """Of one of some classes; true and false are no numbers."""
    truth = bool in kinds or object in kinds
    return lambda value: truth if value is True or value is False else isinstance(value, kinds)


def _tuple(args: tuple[object, ...]) -> Test:
    if len(args) == 2 and args[1] is Ellipsis:
        each = _test(args[0])
        return lambda value: isinstance(value, tuple) and all(each(item) for item in value)
    tests = tuple(map(_test, args))
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(tests)
        and all(test(item) for test, item in zip(tests, value, strict=True))
    )


def _fraction(given: dict[str, object]) -> Fraction:
    value = given.get("value")
    if set(given) != {"value"} or not isinstance(value, str) or not _FRACTION.fullmatch(value):
        raise _refuse("a fraction is written top/bottom")
    return Fraction(value)


def _array(given: dict[str, object]) -> npt.NDArray[np.generic]:
    shape, kind, values = given.get("shape"), given.get("type"), given.get("values")
    known = isinstance(kind, str) and kind in _ARRAYS and set(given) == {"shape", "type", "values"}
    if not known or not isinstance(shape, tuple) or not isinstance(values, tuple):
        raise _refuse("an array has the fields shape, type and values")
    allowed: tuple[type, ...] = (int,) if kind == "i" else (int, float)
    if not all(isinstance(v, allowed) and not isinstance(v, bool) for v in values):
        raise _refuse("an array holds numbers")
    sizes = [n for n in shape if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    if len(sizes) != len(shape) or math.prod(sizes) != len(values):
        raise _refuse("an array's shape and values differ")
    try:
        return np.array(values, dtype=_ARRAYS[str(kind)]).reshape(sizes)
    except (ValueError, OverflowError) as error:
        raise _refuse("an array is out of range") from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value


def _refuse(why: str) -> QuestionError:
    return QuestionError("wire-format", f"Not a sulq value: {why}.")
