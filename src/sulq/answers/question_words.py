"""A question in a few words, as lists of past asks show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.privacy import Event
from sulq.language.question import Above, Choose, Holistic, OpenSums, Sums, Together
from sulq.language.rowfn import Bernstein, Case, Col, IsMissing, Lit, Not, Outer, RowFn

MAX_NAMES: Final = 4  # columns named before the rest are counted


def asked(question: object) -> str:
    """A question in a few words: the ledger keeps what was asked of the rows, not the text it was written in."""
    match question:
        case Together():
            several = list(dict.fromkeys(asked(part) for part in question.questions))
            more = len(several) - 2
            return "; ".join(several[:2]) + (f"; and {more} more" if more > 0 else "")
        case Choose():
            return f"a choice among values of {_names(question.counts.by[-1:]) or 'candidates'}" + _tail(
                question.counts
            )
        case Above():
            return f"the first above a threshold: {asked(question.counts)}"
        case Holistic():
            return f"{type(question.statistic).__name__} of the whole table"
        case Sums() | OpenSums():
            what = list(dict.fromkeys(_value_words(fn) for fn in question.values)) or ["people"]
            more = len(what) - MAX_NAMES
            text = ", ".join(what[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
            return f"{text}{_tail(question)}"
    return "a question"


def _tail(question: Sums | OpenSums) -> str:
    keys = question.by
    by = f" by {_names(keys)}" if keys and _names(keys) else ""
    return by + (f" where {_names((question.where,))} meets a condition" if question.where is not None else "")


def _value_words(fn: RowFn) -> str:
    match fn:
        case Lit():
            return "count"
        case Not(item=IsMissing()):
            return f"count of {_names((fn,))}"
        case Bernstein() | Case():
            return f"mean or sum of {_names((fn,))}" if _names((fn,)) else "count"
        case Outer():
            return f"products of {_names((fn,))}"
    return f"sum of {_names((fn,))}" if _names((fn,)) else "count"


def _names(fns: Sequence[RowFn]) -> str:
    """The columns that row functions read."""
    found: dict[str, None] = {}
    front = list(fns)
    while front and len(found) < 50:
        found |= dict.fromkeys(part.name.rpartition(".")[2] or part.name for part in front if isinstance(part, Col))
        front = [part for outer in front for part in outer.parts()]
    names = list(found)
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def read_value(tree: object) -> object:
    """A value of the vocabulary: itself, or from its canonical text or its tree."""
    if isinstance(tree, Event):
        return tree
    try:
        return wire.decode(tree) if isinstance(tree, str) else wire.from_json(tree)
    except SulqError:
        return None
