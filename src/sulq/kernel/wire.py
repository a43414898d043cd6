"""Strict JSON of the kernel's values: one text has one meaning or none.

A value is a record of its kind and fields, each checked against its declared type; unknown kinds, missing, further or
wrong fields, duplicate keys and NaN are refused (T51). `sulq.answers.wire` writes the whole vocabulary by these rules.
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
from operator import call

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


def to_json(value: object, kinds: Kinds) -> object:
    """The tree of a value of these kinds."""
    kind: type = type(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if kinds.get(kind.__name__) is kind:
        return {"kind": kind.__name__} | {name: to_json(getattr(value, name), kinds) for name in hints(kind)}
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, (tuple, list)):
        return [to_json(item, kinds) for item in value]
    if isinstance(value, (Fraction, Decimal)):
        return {"kind": "fraction", "value": "{}/{}".format(*value.as_integer_ratio())}
    raise refuse(f"a {kind.__name__} has no place on the wire, or is not finite")


def from_json(tree: object, kinds: Kinds, depth: int = 0) -> object:
    """Build the value a tree stands for, checking each field against its declared type."""
    if depth > DEPTH:
        raise refuse("the value is nested too deeply")
    if isinstance(tree, list):
        return tuple(from_json(item, kinds, depth + 1) for item in tree)
    if not isinstance(tree, dict):
        return tree
    given = {name: from_json(item, kinds, depth + 1) for name, item in tree.items() if name != "kind"}
    return built(tree.get("kind"), given, kinds)


def built(kind: object, given: dict[str, object], kinds: Kinds) -> object:
    """A fraction, or a value of one of these kinds with these fields, if they are its own and of their types."""
    if kind == "fraction":
        text = given.get("value")
        if len(given) != 1 or not isinstance(text, str) or not _FRACTION.fullmatch(text):
            raise refuse("a fraction is written top/bottom")
        return Fraction(*map(int, text.split("/")))
    cls = kinds.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise refuse(f"unknown kind {str(kind)[:40]!r}")
    tests, required = _tests(cls)
    if not required <= given.keys() <= tests.keys():
        raise refuse(f"a {kind} has the fields {', '.join(tests)}")
    for name, item in given.items():
        if not tests[name](item):
            raise refuse(f"the field {name} of a {kind} is of the wrong kind")
    return cls(**given)


def refuse(why: str) -> QuestionError:
    """The error for what is no value."""
    return QuestionError("wire-format", f"Not a sulq value: {why}.")


@functools.cache
def hints(cls: type) -> dict[str, object]:
    """The fields of a kind that are written, each with its type."""
    told = typing.get_type_hints(cls)
    return {f.name: told[f.name] for f in dataclasses.fields(cls) if f.metadata.get("wire", True)}


@functools.cache
def _tests(cls: type) -> tuple[dict[str, Test], frozenset[str]]:
    """What each field of a kind must pass, and the fields that may not be left out; worked out once a kind."""
    required = {f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is dataclasses.MISSING}
    return {name: _test(hint) for name, hint in hints(cls).items()}, frozenset(required)


def _test(hint: object) -> Test:
    """Whether a value is of an annotated kind (the annotations the vocabulary uses); true and false are no numbers."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    either = args if origin in (typing.Union, types.UnionType) else (hint,)
    if all(isinstance(option, type) and typing.get_origin(option) is None for option in either):
        plain = typing.cast("tuple[type, ...]", either)
        truth = bool in plain or object in plain
        return lambda value: truth if value is True or value is False else isinstance(value, plain)
    tests = tuple(map(_test, args)) if origin is tuple or len(either) > 1 else ()
    if len(either) > 1:
        return lambda value: any(test(value) for test in tests)
    if origin is typing.Literal:
        return lambda value: isinstance(value, str) and value in args
    if origin is tuple and args[1:] == (Ellipsis,):
        return lambda value: isinstance(value, tuple) and all(map(tests[0], value))
    if origin is tuple:
        return lambda value: isinstance(value, tuple) and len(value) == len(tests) and all(map(call, tests, value))
    if origin is np.ndarray:
        (number,) = typing.get_args(args[1])
        return lambda value: isinstance(value, np.ndarray) and value.dtype == np.dtype(number)
    return lambda _: False
