"""What a model holds, as JSON and back: numbers, texts, arrays and the parts it is made of; no pickle, no code.

An array is a list of its rows, as anybody reads it. Whatever a plain list or object would not
say, says its `kind`: a tuple, a column's domain, a part such as a node of a tree. Reading builds the kinds a
learner names and nothing else, so that a file from elsewhere can be wrong but can run nothing.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np

from sulq.answers import wire
from sulq.answers.wire import KINDS
from sulq.errors import QuestionError, SulqError
from sulq.language.attribute import Attribute
from sulq.learn.features import Attributes, Feature, Features, Labels

Parts = Sequence[type]
COMMON: Final[tuple[type, ...]] = (Attribute, Feature)  # parts that any learner may hold
MAX_DEPTH: Final = 200
_TYPES: Final = {"f": "<f8", "i": "<i8", "b": "?", "U": "U", "O": "O"}


def plain(value: object, parts: Parts = ()) -> object:
    """A value as a tree of JSON.

    Raises:
        QuestionError: `bad-model`: it is of a kind that no model may hold.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}
    if isinstance(value, np.ndarray):
        return _array(value, parts)
    if isinstance(value, dict):
        return _map(value, parts)
    if isinstance(value, (list, tuple)):
        return {
            "kind": "tuple" if isinstance(value, tuple) else "list",
            "items": [plain(item, parts) for item in value],
        }
    return _made(value, parts)


def _made(value: object, parts: Parts) -> object:
    """What is made of something else: terms of the language, features, parts of a learner."""
    if isinstance(value, Features):
        return {"kind": "features", "columns": [[name, wire.to_json(domain)] for name, domain in value.columns]}
    if isinstance(value, Attributes):
        return {"kind": "attributes", "items": [plain(item) for item in value.items]}
    if isinstance(value, Labels):
        return {"kind": "labels", "attribute": plain(value.attribute)}
    if type(value) in (*COMMON, *parts) and dataclasses.is_dataclass(value):
        held = {item.name: plain(getattr(value, item.name), parts) for item in dataclasses.fields(value) if item.init}
        return {"kind": "part", "part": type(value).__name__, "fields": held}
    if isinstance(value, Fraction) or KINDS.get(type(value).__name__) is type(value):
        return {"kind": "term", "value": wire.to_json(value)}
    if isinstance(value, (datetime.datetime, datetime.date)):
        return {"kind": type(value).__name__, "value": value.isoformat()}
    raise QuestionError("bad-model", f"A {type(value).__name__} cannot be written down as part of a model.")


def _array(value: np.ndarray[Any, Any], parts: Parts) -> object:
    if value.dtype.kind == "u":
        value = value.astype(np.int64)
    listed = value.tolist()
    if value.dtype.kind not in _TYPES:
        raise QuestionError("bad-model", "An array of a model holds numbers, truth values or texts.")
    if value.dtype.kind != "O" and value.size and (value.dtype.kind != "f" or np.isfinite(value).all()):
        return listed  # reads back as it is: its shape and kind can be seen
    values = [plain(item, parts) for item in value.ravel().tolist()]
    return {"kind": "array", "type": value.dtype.kind, "shape": list(value.shape), "values": values}


def _map(value: dict[Any, Any], parts: Parts) -> object:
    if all(isinstance(key, str) for key in value) and "kind" not in value:
        return {key: plain(item, parts) for key, item in value.items()}
    return {"kind": "map", "items": [[plain(key, parts), plain(item, parts)] for key, item in value.items()]}


def value_of(tree: object, parts: Parts = ()) -> Any:  # noqa: ANN401 - whatever a model holds
    """The value a tree stands for.

    Raises:
        QuestionError: `bad-model`: the tree is not what `plain` writes.
    """
    try:
        return _value(tree, {part.__name__: part for part in (*COMMON, *parts)}, 0)
    except (SulqError, LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise unreadable() from None


def _value(tree: object, parts: dict[str, type], depth: int) -> object:
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(tree, list):
        found = np.array(tree)
        if found.dtype.kind not in "fibU" or not _alike(tree):
            raise ValueError("a list is an array of one kind")
        return found
    if not isinstance(tree, dict):
        return tree
    kind = tree.get("kind")
    if kind is None:
        return {str(key): _value(item, parts, depth + 1) for key, item in tree.items()}
    return _READ[cast("str", kind)](tree, lambda inner: _value(inner, parts, depth + 1), parts)


def _alike(tree: object) -> bool:
    """Whether an array's cells are of one kind: NumPy would turn 1 and "a" into texts."""
    cells: list[object] = [tree]
    while cells and isinstance(cells[0], list):
        if not all(isinstance(cell, list) for cell in cells):
            return False
        cells = [inner for cell in cells for inner in cast("list[object]", cell)]
    kinds = {type(cell) for cell in cells}
    return len(kinds) == 1 or kinds == {int, float}


Inner = Callable[[object], object]
Reader = Callable[[dict[str, Any], Inner, dict[str, type]], object]


def _read_array(tree: dict[str, Any], inner: Inner, _: dict[str, type]) -> object:
    made = np.empty(len(tree["values"]), dtype=object)
    for i, item in enumerate(tree["values"]):
        made[i] = inner(item)
    return made.astype(_TYPES[tree["type"]]).reshape(tree["shape"])


def _read_part(tree: dict[str, Any], inner: Inner, parts: dict[str, type]) -> object:
    return parts[tree["part"]](**{name: inner(item) for name, item in tree["fields"].items()})


def _read_labels(tree: dict[str, Any], inner: Inner, _: dict[str, type]) -> object:
    made = Labels.__new__(Labels)
    made.attribute = cast("Attribute", inner(tree["attribute"]))
    made.name = made.attribute.name
    return made


_READ: Final[dict[str, Reader]] = {
    "array": _read_array,
    "attributes": lambda tree, inner, _: Attributes(tuple(cast("Attribute", inner(item)) for item in tree["items"])),
    "date": lambda tree, _, __: datetime.date.fromisoformat(tree["value"]),
    "datetime": lambda tree, _, __: datetime.datetime.fromisoformat(tree["value"]),
    "features": lambda tree, _, __: Features([(name, cast("Any", wire.from_json(d))) for name, d in tree["columns"]]),
    "float": lambda tree, _, __: float(tree["value"]),
    "labels": _read_labels,
    "list": lambda tree, inner, _: [inner(item) for item in tree["items"]],
    "map": lambda tree, inner, _: {inner(key): inner(item) for key, item in tree["items"]},
    "part": _read_part,
    "term": lambda tree, _, __: wire.from_json(tree["value"]),
    "tuple": lambda tree, inner, _: tuple(inner(item) for item in tree["items"]),
}


def unreadable(why: str = "This is not a model that sulq wrote.") -> QuestionError:
    """The refusal of what cannot be loaded."""
    return QuestionError("bad-model", why)
