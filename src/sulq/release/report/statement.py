"""A report's promise in a reader's words, and notes on its method for a statistician; all of it from public facts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.answers.answer import Answer, Answers
from sulq.answers.released import Noise
from sulq.language.facts import TableFacts, brief
from sulq.language.law import ExponentialLaw, FlipLaw, GaussianLaw, LaplaceLaw
from sulq.language.privacy import Epsilon, EpsilonDelta, EpsilonKeys, Loss, Queries, Rho, Unit, epsilon_of
from sulq.release.base import Paid

FACTOR_SHOWN: Final = 1e6  # past it a factor is "more than a million"
RHO_DELTA: Final = Fraction(1, 10**6)  # at which a rho is told as an epsilon
MUCH_EPSILON: Final = 5.0
MAX_LAWS: Final = 6  # kinds of noise that are named of one table


@dataclass(frozen=True, slots=True)
class Said:
    """A heading and what stands below it, a paragraph each."""

    heading: str
    paragraphs: tuple[str, ...]


FOR_EVER: Final = """For ever. The promise holds against readers with any other data and any amount of computing,
    now and later. Nothing that is computed from this report weakens it."""
ADDS_UP: Final = """It is about this report. Whatever else is published from the same data about the same {one}s adds to
    it, and a ledger keeps the sum."""
TRUE_OF_MANY: Final = """What is true of many: a report that finds a group to be ill more often tells that of every
    {one} of the group, in the data or not."""
DECLARED_PUBLIC: Final = """What was declared public: the tables and columns there are, the values a category may have,
    and the bounds that numbers are held in."""
GROUPS: Final = """Groups of {one}s together, such as a family, are protected less: for two the factor above is
    squared."""
GRID: Final = """Values were held in their declared bounds and put on a public grid of integers; sums are exact, integer
    noise was added once. Means and ratios are computed from noisy sums, quantiles are chosen by a noisy rank or read
    from noisy counts, and the order and the selection of rows follow noisy values."""
INTERVALS: Final = """An interval holds the statistic of the data's bounded values with probability {level:.0%}, by the
    law of the noise alone. It does not count sampling, missing answers or errors of measurement: for a larger
    population add the sampling error to it."""
NOISY_COUNTS: Final = """Counts may be below zero or not whole, and parts need not add up to a total that was asked for
    by itself: each number has noise of its own."""


def _said(text: str, **words: object) -> str:
    return " ".join(text.format(**words).split())


def promise(paid: Sequence[Paid], tables: Sequence[TableFacts], budget: Sequence[str] = ()) -> list[Said]:
    """Who is protected, how much, for how long, and what is not: for a reader who never saw a proof.

    `paid`: of each part of the report. `budget`: what is said of the whole budget, if readers are told.
    """
    unit = paid[0].unit
    one = "row" if unit.column is None else "person"
    return [
        Said("Who is protected", _who(unit, tables)),
        Said("How much", (*_how_much([part.spent for part in paid], unit), *budget)),
        Said("For how long", (_said(FOR_EVER), _said(ADDS_UP, one=one))),
        Said("What is not protected", _not(unit, one)),
    ]


def _who(unit: Unit, tables: Sequence[TableFacts]) -> tuple[str, ...]:
    if unit.column is None:
        found = ["Every single row. Somebody with several rows is protected for one of them, not for all together."]
    elif unit.rows == 1:
        found = ["Every person in the data. One row of each counts; further rows of the same person are left out."]
    else:
        kept = f"At most {unit.rows:,} rows of each count; further rows are left out."
        found = [f"Every person in the data, with all of their rows together. {kept}"]
    public = [table.schema.table for table in tables if table.public]
    if public:
        found.append(f"Rows of {', '.join(public)} are declared public and are not protected.")
    return tuple(found)


def _how_much(spent: Sequence[Loss], unit: Unit) -> Iterator[str]:
    one = "row" if unit.column is None else "person"
    change = {
        "add_remove": f"Whether any one {one} is in the data or not",
        "replace_one": f"Putting another {one} in any one's place",
        "zero_out": f"Blanking what any one {one} says",
    }[unit.neighbors]
    epsilon, delta = _together(spent)
    if epsilon is None:
        yield f"Every number has noise by the policy of its {spent[0]}, as the notes on the method say."
        return
    factor = math.exp(min(epsilon, 50.0))
    most = "more than a million" if factor >= FACTOR_SHOWN else f"at most {factor:,.3g}"
    weak = " That is a weak promise: somebody's presence may be told from it." if epsilon > MUCH_EPSILON else ""
    yield f"{change} changes the probability of whatever this report says by a factor of {most}.{weak}"
    if delta:
        yield f"This holds except with probability {delta:.2g}."
    parts = " and ".join(map(str, spent))
    yield f"In the field's terms it is differentially private for {parts}, with neighbours by {unit.neighbors}."


def _together(spent: Sequence[Loss]) -> tuple[float | None, float]:
    """All spends as one epsilon and delta; a rho is told at a delta of its own."""
    epsilon = delta = 0.0
    for loss in spent:
        match loss:
            case Epsilon():
                epsilon += float(loss.exact)
            case EpsilonDelta() | EpsilonKeys():
                epsilon, delta = epsilon + float(loss.exact), delta + float(loss.exact_delta)
            case Rho():
                epsilon += float(epsilon_of(loss.exact, RHO_DELTA))
                delta += float(RHO_DELTA)
            case Queries():
                return None, 0.0
    return epsilon, delta


def _not(unit: Unit, one: str) -> tuple[str, ...]:
    found = [_said(TRUE_OF_MANY, one=one), _said(DECLARED_PUBLIC), _said(GROUPS, one=one)]
    known = () if unit.neighbors == "add_remove" else (f"How many {one}s there are is public.",)
    return (*found, *known)


def method(paid: Sequence[Paid], tables: Sequence[TableFacts], level: float) -> list[str]:
    """How the numbers were made and what their intervals count, for a statistician; a paragraph each."""
    unit = paid[0].unit
    found = [_said(GRID), _said(INTERVALS, level=level), _said(NOISY_COUNTS)]
    if unit.column is not None:
        found.append(
            f"Statistics are of the kept rows: of each person at most {unit.rows:,}, chosen by a keyed hash of the row."
        )
    entries = [str(receipt.seq) for part in paid for receipt in part.receipts]
    found.append(f"Entries of the ledger: {', '.join(entries) or 'none'}. Made by sulq {paid[0].version}.")
    found += [f"Declared columns of {table.schema.table}: {_columns(table)}." for table in tables]
    return found


def _columns(table: TableFacts) -> str:
    return "; ".join(f"{name}: {brief(column)}" for name, column in table.schema.columns)


def noise_told(answers: Answers | Sequence[Answer] | None) -> str:
    """The noise of one table's numbers: its laws, with the standard deviation of each."""
    told: dict[str, None] = {}
    for answer in answers or ():
        told |= dict.fromkeys(_law(noise) for noise in answer.released.noise)
    shown = list(told)[:MAX_LAWS]
    more = f", and {len(told) - MAX_LAWS} more" if len(told) > MAX_LAWS else ""
    return f"Noise: {'; '.join(shown)}{more}." if shown else "Nothing here depends on a row, so there is no noise."


def _law(noise: Noise) -> str:
    match noise.law:
        case FlipLaw():
            return "a choice by permute-and-flip"
        case ExponentialLaw():
            return "a choice by the exponential mechanism"
        case LaplaceLaw():
            name = "discrete Laplace"
        case GaussianLaw():
            name = "discrete Gaussian"
        case law:
            name = type(law).__name__.removesuffix("Law")
    return f"{name}, standard deviation {noise.deviation:,.3g}"
