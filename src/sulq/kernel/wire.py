"""Strict JSON of the kernel's values: one text has one meaning or none.

A value is a record of its kind and fields, each checked against its declared type; unknown kinds, missing, further or
wrong fields, duplicate keys and NaN are refused (T51). `sulq.terms.wire` writes the whole vocabulary by these rules.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sulq.errors import QuestionError

DEPTH: typing.Final = 200
_FRACTION: typing.Final = re.compile(r"-?[0-9]{1,400}/[1-9][0-9]{0,399}")

Kinds = Mapping[str, type]
Test = typing.Callable[[object], bool]


def strict(text: str | bytes) -> object:
    """Parse JSON that has one meaning: no duplicate keys, no NaN, no bottomless nesting."""
    try:
        plain = text if isinstance(text, str) else text.decode("utf-8")  # json would guess at UTF-16 and UTF-32
        return json.loads(plain, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        pass
    raise refuse("the text is not strict JSON")  # here, where no text of its own is in reach of a traceback


def to_json(value: object, kinds: Kinds) -> object:
    """The tree of a value of these kinds."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refuse("a number is not finite")
        return float(value)
    if isinstance(value, (Fraction, Decimal)):
        number = Fraction(value)
        return {"kind": "fraction", "value": f"{number.numerator}/{number.denominator}"}
    if isinstance(value, (tuple, list)):
        return [to_json(item, kinds) for item in value]
    kind: type = type(value)
    if kinds.get(kind.__name__) is not kind:
        raise refuse(f"a {kind.__name__} has no place on the wire")
    usual = optional(kind)
    told = {name: getattr(value, name) for name in hints(kind)}
    return {"kind": kind.__name__} | {
        name: to_json(item, kinds) for name, item in told.items() if name not in usual or item != usual[name]
    }


def from_json(tree: object, kinds: Kinds, depth: int = 0) -> object:
    """Build the value a tree stands for, checking each field against its declared type."""
    if depth > DEPTH:
        raise refuse("the value is nested too deeply")
    if isinstance(tree, list):
        return tuple(from_json(item, kinds, depth + 1) for item in tree)
    if not isinstance(tree, dict):
        return tree
    kind = tree.get("kind")
    given = {name: from_json(item, kinds, depth + 1) for name, item in tree.items() if name != "kind"}
    return fraction(given) if kind == "fraction" else built(kind, given, kinds)


def built(kind: object, given: dict[str, object], kinds: Kinds) -> object:
    """A value of one of these kinds with these fields, if they are its own and of their types."""
    cls = kinds.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise refuse(f"unknown kind {str(kind)[:40]!r}")
    tests, required = _tests(cls)
    if not required <= given.keys() <= tests.keys():
        raise refuse(f"a {kind} has the fields {', '.join(tests)}")
    for name, item in given.items():
        if not tests[name](item):
            raise refuse(f"the field {name} of a {kind} is of the wrong kind")
    value: object = cls(**given)
    return value


def fraction(given: Mapping[str, object]) -> Fraction:
    """A fraction, as it is written."""
    value = given.get("value")
    if set(given) != {"value"} or not isinstance(value, str) or not _FRACTION.fullmatch(value):
        raise refuse("a fraction is written top/bottom")
    return Fraction(value)


@functools.cache
def hints(cls: type) -> dict[str, object]:
    """The fields of a kind that are written, each with its type."""
    told = typing.get_type_hints(cls)
    return {f.name: told[f.name] for f in dataclasses.fields(cls) if f.metadata.get("wire", True)}


@functools.cache
def optional(cls: type) -> dict[str, object]:
    """Fields that are written only where they say something: texts from before they were there keep their digests."""
    return {f.name: f.default for f in dataclasses.fields(cls) if f.metadata.get("wire") == "set"}


def refuse(why: str) -> QuestionError:
    """The error for what is no value."""
    return QuestionError("wire-format", f"Not a sulq value: {why}.")


@functools.cache
def _tests(cls: type) -> tuple[dict[str, Test], frozenset[str]]:
    """What each field of a kind must pass, and the fields that may not be left out; worked out once a kind."""
    required = {f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is dataclasses.MISSING}
    return {name: _test(hint) for name, hint in hints(cls).items()}, frozenset(required)


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


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value
