"""Polynomials in the cells of one row, with whole coefficients, and the intervals they can reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
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
    places: list[tuple[int, ...]] = []
    if all(len(set(monomial)) == len(monomial) for monomial in polynomial) and 2 ** len(used) <= MAX_CORNERS:
        places = list(itertools.product(*(atoms[atom] for atom in used)))
    elif len(used) == 1 and max(map(len, polynomial)) == 2:  # atoms are whole: the best is beside the turn
        (atom,), (low, high) = used, atoms[used[0]]
        turn = -polynomial.get((atom,), 0) // (2 * polynomial[atom, atom])
        places = [(low,), (high,), *((place,) for place in (turn, turn + 1) if low < place < high)]
    if places:
        found = [_at(polynomial, dict(zip(used, place, strict=True))) for place in places]
        return min(found), max(found)
    terms = [sorted(end * factor for end in _power(monomial, atoms)) for monomial, factor in polynomial.items()]
    return sum(term[0] for term in terms), sum(term[1] for term in terms)


def _at(polynomial: Polynomial, values: Mapping[int, int]) -> int:
    return sum(factor * math.prod(values[atom] for atom in monomial) for monomial, factor in polynomial.items())


def _power(monomial: Monomial, atoms: Mapping[int, Interval]) -> Interval:
    low = high = 1
    for atom in set(monomial):
        power = monomial.count(atom)
        ends = [end**power for end in atoms[atom]]
        if power % 2 == 0 and atoms[atom][0] < 0 < atoms[atom][1]:
            ends.append(0)
        products = [a * b for a in (low, high) for b in (min(ends), max(ends))]
        low, high = min(products), max(products)
    return low, high
