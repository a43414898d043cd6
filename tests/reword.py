"""The same question in other words: rewritings under which no row's contribution changes, drawn at random."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np

from sulq.language.question import Question, Sums, Together
from sulq.language.rowfn import Arith, Compare, IsIn, Logic, Not, RowFn

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def reworded(question: Question, rng: np.random.Generator) -> Question:
    """Another way to put a question: turned, shuffled, repeated, nested, doubly denied."""
    if isinstance(question, Sums):
        shares = question.shares or (Fraction(1),) * len(question.values)
        factor = Fraction(int(rng.integers(1, 9)), 3)
        places = rng.permutation(len(question.values))
        return dataclasses.replace(
            question,
            values=tuple(_fn(question.values[i], rng) for i in places),
            where=None if question.where is None else _denied(_fn(question.where, rng), rng),
            by=tuple(_fn(fn, rng) for fn in question.by),
            shares=tuple(shares[i] * factor for i in places),
        )
    places = rng.permutation(len(question.questions))
    shares = question.shares or (Fraction(1),) * len(question.questions)
    return Together(tuple(reworded(question.questions[i], rng) for i in places), tuple(shares[i] for i in places))


def _fn(fn: RowFn, rng: np.random.Generator) -> RowFn:
    given = {field.name: _any(getattr(fn, field.name), rng) for field in dataclasses.fields(fn)}
    if isinstance(fn, Compare) and rng.random() < 0.5:
        return Compare(MIRRORED[fn.op], given["right"], given["left"])
    if isinstance(fn, Arith) and fn.op in "+*" and rng.random() < 0.5:
        return Arith(fn.op, given["right"], given["left"])
    if isinstance(fn, IsIn):
        values = list(given["values"])
        return IsIn(given["item"], tuple(values[i] for i in rng.permutation(len(values))) + tuple(values[:1]))
    if isinstance(fn, Logic):
        items = [_denied(item, rng) for item in given["items"]]
        items = [items[i] for i in rng.permutation(len(items))]
        if rng.random() < 0.5:
            items.append(Logic(fn.op, (items[0], items[-1])))
        return Logic(fn.op, tuple(items))
    return dataclasses.replace(fn, **given)


def _any(value: object, rng: np.random.Generator) -> object:
    if isinstance(value, tuple):
        return tuple(_any(item, rng) for item in value)
    return _fn(value, rng) if isinstance(value, RowFn) else value


def _denied(fn: RowFn, rng: np.random.Generator) -> RowFn:
    return Not(Not(fn)) if rng.random() < 0.3 else fn
