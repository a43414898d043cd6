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

FORMAT: typing.Final = 1
DEPTH: typing.Final = 200
_FRACTION: typing.Final = re.compile(r"-?[0-9]{1,400}/[1-9][0-9]{0,399}")
_ARRAYS: typing.Final = {"i": "<i8", "f": "<f8"}


def encode(value: object) -> str:
    """Write a value of the vocabulary as canonical JSON."""
    return json.dumps(to_json(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def decode(text: str | bytes) -> object:
    """Read a value of the vocabulary back, or refuse the text."""
    return from_json(strict(text))


def digest(value: object) -> str:
    """Name a value by the SHA-256 of its canonical bytes."""
    return hashlib.sha256(encode(value).encode()).hexdigest()


def strict(text: str | bytes) -> object:
    """Parse JSON that has one meaning: no duplicate keys, no NaN, no bottomless nesting."""
    try:
        plain = text if isinstance(text, str) else text.decode("utf-8")  # json would guess at UTF-16 and UTF-32
        return json.loads(plain, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise _refuse("the text is not strict JSON") from error


def to_json(value: object) -> object:
    """Turn a value into the tree of its JSON."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refuse("a number is not finite")
        return value
    if isinstance(value, (Fraction, Decimal)):
        number = Fraction(value)
        return {"kind": "fraction", "value": f"{number.numerator}/{number.denominator}"}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _ARRAYS or not np.isfinite(value).all():
            raise _refuse("an array holds finite numbers")
        return {"kind": "array", "shape": list(value.shape), "type": value.dtype.kind, "values": value.ravel().tolist()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    kind = type(value).__name__
    if vocabulary.KINDS.get(kind) is not type(value):
        raise _refuse(f"a {kind} has no place on the wire")
    return {"kind": kind} | {name: to_json(getattr(value, name)) for name in _hints(vocabulary.KINDS[kind])}


def from_json(tree: object, depth: int = 0) -> object:
    """Build the value a JSON tree stands for, checking each field against its declared kind."""
    if depth > DEPTH:
        raise _refuse("the value is nested too deeply")
    if isinstance(tree, list):
        return tuple(from_json(item, depth + 1) for item in tree)
    if not isinstance(tree, dict):
        return tree
    kind = tree.get("kind")
    given = {name: from_json(item, depth + 1) for name, item in tree.items() if name != "kind"}
    if kind == "fraction":
        return _fraction(given)
    if kind == "array":
        return _array(given)
    cls = vocabulary.KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise _refuse(f"unknown kind {str(kind)[:40]!r}")
    hints = _hints(cls)
    required = {f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is dataclasses.MISSING}
    if set(given) - set(hints) or required - set(given):
        raise _refuse(f"a {kind} has the fields {', '.join(hints)}")
    for name, item in given.items():
        if not _fits(item, hints[name]):
            raise _refuse(f"the field {name} of a {kind} is of the wrong kind")
    return cls(**given)


@functools.cache
def _hints(cls: type) -> dict[str, object]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.metadata.get("wire", True)}


def _fits(value: object, hint: object) -> bool:
    """Whether a value is of an annotated kind (the annotations the vocabulary uses)."""
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in args)
    if origin is typing.Literal:
        return isinstance(value, str) and value in args
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(args) == 2 and args[1] is Ellipsis:
            return all(_fits(item, args[0]) for item in value)
        return len(value) == len(args) and all(_fits(i, a) for i, a in zip(value, args, strict=True))
    if hint is None or hint is type(None):
        return value is None
    if isinstance(value, bool):
        return hint is bool or hint is object
    if origin is np.ndarray:
        (number,) = typing.get_args(args[1])
        return isinstance(value, np.ndarray) and value.dtype == np.dtype(number)
    return isinstance(hint, type) and isinstance(value, hint)


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
