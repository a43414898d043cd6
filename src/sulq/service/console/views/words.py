"""Losses, units, columns and numbers in plain words, for people who never read a proof."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Final

from sulq.answers import wire
from sulq.display.numbers import UNKNOWN, figure
from sulq.errors import SulqError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Text, Timestamp, Vertices
from sulq.language.privacy import LOSS_BY_FIELDS, Budget, Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear, Unit
from sulq.language.rows_choice import AutoUnit

MAX_CATEGORIES_NAMED: Final = 8  # categories named before the rest are counted


def number(value: object) -> str:
    """A number as it is read: thousands apart, no more digits than mean something."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return signed(figure(value, figures=4))


def signed(text: str) -> str:
    """A number's text with the sign that is as wide as a plus."""
    return text.replace("-", "−")


def as_float(value: object) -> float | None:
    """A number as a float; None for what is none, a truth value among it."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def off(value: float) -> str:
    """How far off: three digits are enough."""
    return signed(figure(value))


def small(value: float) -> str:
    """An epsilon or delta: few digits, and powers of ten where there are many noughts."""
    return f"{value:.3g}"


def loss(tree: object) -> Loss | Budget | None:
    """A loss or budget from its JSON, in the canonical form or the short one; None for anything else."""
    if not isinstance(tree, Mapping):
        return None
    try:
        found = wire.from_json(dict(tree)) if "kind" in tree else LOSS_BY_FIELDS[frozenset(tree)](**tree)
    except (SulqError, LookupError):
        return None
    return found if isinstance(found, (Epsilon, Rho, EpsilonDelta, SubLinear, Queries)) else None


def unit(tree: object) -> Unit | None:
    """Whom something protects, from its JSON."""
    try:
        found = wire.from_json(tree)
    except SulqError:
        return None
    return found if isinstance(found, Unit) else None


def size(value: Loss | Budget | None) -> float:
    """How much a loss is, in its own currency, for a gauge or a chart."""
    match value:
        case SubLinear() | Queries():
            return float(value.queries)
        case Epsilon() | Rho() | EpsilonDelta():
            return float(value.amount)
    return 0.0


def price(value: Loss | Budget | None) -> str:
    """A loss as a price tag."""
    match value:
        case Queries():
            return f"{value.queries:,} {'query' if value.queries == 1 else 'queries'}"
        case SubLinear():
            return f"{value.queries:,} queries"
        case EpsilonDelta():
            return f"ε {small(float(value.amount))}, δ {small(float(value.delta))}"
        case Epsilon():
            return f"ε {small(float(value.amount))}"
        case Rho():
            return f"ρ {small(float(value.amount))}"
    return "nothing"


def left(remaining: Loss | Budget | None, budget: Loss | Budget | None) -> float:
    """What part of a budget is left, from 0 to 1."""
    whole = size(budget)
    return min(max(size(remaining) / whole, 0.0), 1.0) if whole > 0 else 0.0


def odds(value: Loss | Budget | None, unit: Unit, of: str = "this answer") -> str:
    """What an epsilon means, without a formula: the ratio of an answer's probabilities with and without someone."""
    if not isinstance(value, (Epsilon, EpsilonDelta)):
        return ""
    one = "row" if unit.column is None else "person"
    who = {
        "add_remove": f"Whether a {one} is in the data or not",
        "replace_one": f"Having another {one} in one's place",
        "zero_out": f"Blanking what a {one} says",
    }[unit.neighbors]
    factor = math.exp(min(float(value.amount), 50.0))
    if factor >= 1e6:
        return f"{who} may change the odds of {of} by a factor of more than a million: that protects next to nothing."
    by = f"{factor:,.2f}" if factor < 10 else f"{factor:,.0f}"
    return f"{who} changes the odds of {of} by a factor of at most {by}."


def whom(unit: Unit) -> str:
    """Who is hidden, as the object of a sentence."""
    if unit.column is None:
        return "any one row"
    ids = "" if unit.fold is None else f" (ids alike but for {unit.fold} are one)"
    if isinstance(unit, AutoUnit):
        return f"any one person{ids}, with all of their rows together; how many are kept sulq will choose"
    if unit.rows == 1:
        return f"any one person{ids}, of whom one row is kept"
    return f"any one person{ids}, with all of their rows (up to {unit.rows:,}) together"


def relation(unit: Unit) -> str:
    """What is protected; how well, the budget says."""
    one = "row" if unit.column is None else "person"
    return {
        "add_remove": f"What it protects is whether a {one} is in the data at all.",
        "replace_one": f"What it protects is which {one} stands in one's place; how many there are is public.",
        "zero_out": f"What it protects is what a {one} says; how many rows there are, and where, is public.",
    }[unit.neighbors]


def guess(value: Loss | Budget | None) -> str:
    """What a budget without an epsilon means: how often a guess at what is protected is right, half being chance.

    It is at most 1/2 + sqrt(rho/2)/2, by Pinsker's inequality: a rho bounds the divergence of the two laws.
    """
    if not isinstance(value, Rho):
        return ""
    chance = 0.5 + math.sqrt(float(value.amount) / 2) / 2
    right = min(math.floor(chance * 1000 + 1) / 10, 100.0)
    if right >= 99.9:
        return "Whoever guesses that from all answers together may always be right: that protects next to nothing."
    return f"Whoever guesses that from all answers together is right in at most {right}% of cases; 50% is chance."


def guarantee(unit: Unit, budget: Budget) -> list[str]:
    """The promise of a dataset, a sentence each."""
    found = [f"Every answer carries noise, by which it protects {whom(unit)}.", relation(unit)]
    if means := odds(budget, unit, "all answers together, for ever,"):
        found.append(means)
    if means := guess(budget):
        found.append(means)
    if isinstance(budget, EpsilonDelta):
        found.append(f"This holds except with probability {small(float(budget.delta))}.")
    if isinstance(budget, SubLinear):
        found.append(f"At most {budget.queries:,} noisy sums are ever answered.")
    return found


def kind(column: Column) -> str:
    """What a column holds."""
    names = {
        Int: "whole number",
        Real: "number",
        Bool: "true or false",
        Category: "category",
        Date: "date",
        Timestamp: "moment",
        Text: "text",
        Vertices: "vertex",
    }
    return names[type(column)]


def bounds(column: Column) -> str:
    """The declared bounds of a column, and whether its cells are never missing."""
    if column.missing:
        return _bounds(column)
    counts = "the lowest" if column.default is None else column.default
    return f"{_bounds(column)}; never missing (else {counts})"


def _bounds(column: Column) -> str:
    match column:
        case Int() | Real():
            return f"{number(column.lo)} to {number(column.hi)}"
        case Date():
            return f"{column.lo} to {column.hi}"
        case Timestamp():
            return f"{column.lo} to {column.hi} (UTC)"
        case Category():
            named = ", ".join(str(value) for value in column.values[:MAX_CATEGORIES_NAMED])
            more = len(column.values) - MAX_CATEGORIES_NAMED
            return f"{named} and {more:,} more" if more > 0 else named
        case Bool():
            return "true, false"
        case Text():
            return f"compared, never listed; at most {column.longest:,} characters"


def moment(value: object) -> str:
    """A time in UTC, to the minute; Unix seconds or ISO text."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            when = datetime.datetime.fromtimestamp(value, datetime.UTC)
        else:
            when = datetime.datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return str(value or "")
    if when.tzinfo is not None:
        when = when.astimezone(datetime.UTC)
    return when.strftime("%Y-%m-%d %H:%M")
