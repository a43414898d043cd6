"""Private: an exact value that does not come out by accident."""

from __future__ import annotations

import ast
import copy
import io
import logging
import pickle
import traceback

import numpy as np
import pytest

from sulq.errors import AccessDenied
from sulq.kernel.private import Private
from tests.trees import trees

SECRET = 8_675_309

WAYS = {
    "equal": lambda box: box == box,  # noqa: PLR0124 - whether it may be asked at all
    "unequal": lambda box: box != SECRET,
    "less": lambda box: box < SECRET,
    "most": lambda box: max([box, box]),
    "sorted": lambda box: sorted([box, box]),
    "hash": hash,
    "set": lambda box: {box},
    "truth": bool,
    "length": len,
    "iterate": list,
    "unpack": lambda box: (*box,),
    "index": lambda box: box[0],
    "contains": lambda box: SECRET in box,
    "int": int,
    "float": float,
    "complex": complex,
    "range": range,
    "array": np.asarray,
    "sum": np.sum,
    "format": lambda box: f"{box:d}",
    "plain format": lambda box: f"{box}",
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "old pickle": lambda box: pickle.dumps(box, protocol=0),
    "state": lambda box: box.__getstate__(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_box_does_not_open_SR21(way):
    """Comparing, converting, iterating, copying and pickling are refused with one code (SR21)."""
    for value in (SECRET, np.array([SECRET])):
        with pytest.raises(AccessDenied) as refusal:
            WAYS[way](Private(value))
        assert refusal.value.code == "private-value"
        assert str(SECRET) not in str(refusal.value)


def test_printing_and_logging_a_box_shows_nothing_T31():
    """repr, str, log lines, nested containers and tracebacks hold no digit of the value (T31)."""
    box = Private(np.array([SECRET]))
    stream = io.StringIO()
    log = logging.getLogger("sulq.test_private")
    handler = logging.StreamHandler(stream)
    log.addHandler(handler)
    try:
        log.error("%s %r", box, [box])
        try:
            raise ValueError(box)
        except ValueError:
            stream.write(traceback.format_exc())
    finally:
        log.removeHandler(handler)
    print(box, [box], {"a": box}, file=stream)
    assert str(SECRET) not in stream.getvalue()
    assert stream.getvalue().count("Private(...)") >= 4


def test_a_box_has_no_other_attributes():
    """There is no dictionary to look into and nothing can be hung on it."""
    box = Private(1)
    assert not hasattr(box, "__dict__")
    with pytest.raises(AttributeError):
        box.extra = 1


def test_what_is_done_inside_stays_inside():
    """A function applied to a box gives another box."""
    assert isinstance(Private(2).map(lambda x: x + 1), Private)
    assert Private(2).map(lambda x: x + 1).open() == 3


def opened(tree: ast.AST) -> list[str]:
    """Calls of a method `open` without arguments: files are opened with a mode or by a path."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "open"
        and not node.args
        and not node.keywords
    ]


def test_only_the_mechanisms_open_a_box():
    """No other part calls open() on what could be a Private, or names its slot; `testing` has made-up data (SR9)."""
    openers, lookers = [], []
    for place, tree in trees().items():
        openers += [place.parts[0] if place.parts[0] != "kernel" else place.parent.as_posix() for _ in opened(tree)]
        if place.as_posix() != "kernel/private.py":
            lookers += [place for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "_value"]
    assert "kernel/mechanisms" in openers
    assert set(openers) <= {"kernel/mechanisms", "testing"}
    assert lookers == []


def test_the_search_for_openers_finds_one():
    """Control: the pattern used above notices a call."""
    assert opened(ast.parse("total = exact.open() + 1")) == ["exact.open()"]
    assert opened(ast.parse("with path.open('rb') as file: pass")) == []
