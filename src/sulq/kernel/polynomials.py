"""Polynomials in the cells of one row, with whole coefficients, and the intervals they can reach."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

MAX_TERMS: Final = 64
MAX_CORNERS: Final = 4096
Monomial = tuple[int, ...]  # numbers of atoms, sorted, one for each power
Polynomial = Mapping[Monomial, int]
Interval = tuple[int, int]


def constant(value: int) -> Polynomial:
    """A polynomial without atoms."""
    return {(): value} if value else {}


def add(left: Polynomial, right: Polynomial, times: int = 1) -> Polynomial:
    """Left + times * right."""
    found = dict(left)
    for monomial, factor in right.items():
        found[monomial] = found.get(monomial, 0) + times * factor
    return {monomial: factor for monomial, factor in found.items() if factor}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """Their product; None where it has too many terms to be kept."""
    if len(left) * len(right) > MAX_TERMS:
        return None
    found: Polynomial = {}
    for (a, p), (b, q) in itertools.product(left.items(), right.items()):
        found = add(found, {tuple(sorted(a + b)): p * q})
    return found


def reach(polynomial: Polynomial, atoms: Mapping[int, Interval]) -> Interval:
    """An interval that holds every value, each atom within its own: exact where no atom has a power above one.

    Of one atom squared the extreme of the parabola is looked at too; other polynomials are summed term by term.
    """
    used = sorted({atom for monomial in polynomial for atom in monomial})
    if all(len(set(monomial)) == len(monomial) for monomial in polynomial) and 2 ** len(used) <= MAX_CORNERS:
        found = [_at(polynomial, dict(zip(used, corner, strict=True))) for corner in _corners(used, atoms)]
        return min(found), max(found)
    if len(used) == 1 and max(map(len, polynomial)) == 2:
        return _parabola(polynomial, used[0], *atoms[used[0]])
    low = high = 0
    for monomial, factor in polynomial.items():
        a, b = _power(monomial, atoms)
        low, high = low + min(a * factor, b * factor), high + max(a * factor, b * factor)
    return low, high


def _corners(used: list[int], atoms: Mapping[int, Interval]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*(atoms[atom] for atom in used))


def _at(polynomial: Polynomial, values: Mapping[int, int]) -> int:
    total = 0
    for monomial, factor in polynomial.items():
        for atom in monomial:
            factor *= values[atom]  # noqa: PLW2901 - the term's value
        total += factor
    return total


def _parabola(polynomial: Polynomial, atom: int, low: int, high: int) -> Interval:
    second, first = polynomial[atom, atom], polynomial.get((atom,), 0)
    turn = Fraction(-first, 2 * second)
    places = [low, high, *(place for place in (turn.__floor__(), turn.__ceil__()) if low < place < high)]
    found = [_at(polynomial, {atom: place}) for place in places]  # atoms are whole: the best is beside the turn
    return min(found), max(found)


def _power(monomial: Monomial, atoms: Mapping[int, Interval]) -> Interval:
    low = high = 1
    for atom, several in itertools.groupby(monomial):
        power = len(list(several))
        ends = [end**power for end in atoms[atom]]
        if power % 2 == 0 and atoms[atom][0] < 0 < atoms[atom][1]:
            ends.append(0)
        products = [a * b for a in (low, high) for b in (min(ends), max(ends))]
        low, high = min(products), max(products)
    return low, high
