"""The interval of a polynomial holds all its values."""

from __future__ import annotations

import itertools
import random

import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.values import Polynomial, add, multiply, reach


def values(polynomial: Polynomial, atoms: dict[int, tuple[int, int]]) -> list[int]:
    """All values, by brute force."""
    found = []
    for cells in itertools.product(*(range(low, high + 1) for low, high in atoms.values())):
        at = dict(zip(atoms, cells, strict=True))
        total = 0
        for monomial, factor in polynomial.items():
            term = factor
            for atom in monomial:
                term *= at[atom]
            total += term
        found.append(total)
    return found


def test_the_interval_holds_every_value_and_is_exact_where_it_says_so() -> None:
    """Random polynomials in three atoms: exact without powers, and for one atom squared; all others are refused."""
    draw = random.Random("polynomials")
    for _ in range(400):
        atoms = {i: (low, low + draw.randint(0, 4)) for i in range(3) for low in [draw.randint(-4, 3)]}
        monomials = [tuple(sorted(draw.choices(range(3), k=draw.randint(0, 3)))) for _ in range(draw.randint(1, 4))]
        polynomial: Polynomial = {}
        for monomial in monomials:
            polynomial = add(polynomial, {monomial: draw.randint(-5, 5)})
        used = {atom for monomial in polynomial for atom in monomial}
        if all(len(set(m)) == len(m) for m in polynomial) or (len(used) == 1 and max(map(len, polynomial)) <= 2):
            found = values(polynomial, atoms)
            assert reach(polynomial, atoms) == (min(found), max(found))
        else:
            with pytest.raises(Refused):
                reach(polynomial, atoms)


def test_terms_that_sum_to_a_constant_do() -> None:
    """u^2 + 2u(w - u) + (w - u)^2 = w^2, whatever u is."""
    u, w = {(0,): 1}, {(): 7}
    rest = add(w, u, -1)
    parts = [multiply(u, u), multiply(u, rest), multiply(rest, rest)]
    total: Polynomial = {}
    for part, times in zip(parts, (1, 2, 1), strict=True):
        assert part is not None
        total = add(total, part, times)
    assert total == {(): 49}


def test_a_product_of_too_many_terms_is_not_kept() -> None:
    """Control: a smaller one is."""
    long = {(i,): 1 for i in range(9)}
    assert multiply(long, long) is None
    assert multiply(long, {(): 2}) == {(i,): 2 for i in range(9)}
