"""Beliefs before and after answers: exact posteriors, confidences and their walk."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.audit.beliefs import Heard, Tracker, confidence, independent, posterior, shift
from sulq.errors import QuestionError
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.language.sublinear import conf, inv_conf

GEOMETRIC = LaplaceLaw(Fraction(10, 7))  # epsilon .7 for a bit


def is_one(value: object) -> bool:
    return value == 1


def test_confidence_is_a_bijection_that_moves_at_least_four_times_as_fast_S0_2() -> None:
    """S0.2: round trip to 1e-12, max |dp|/|dconf| = .25; 1e-9 to 1e-6 is 6.9 in confidence."""
    for p in (1e-300, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9):
        assert inv_conf(conf(p)) == pytest.approx(p, rel=1e-12)
    assert (conf(0.0), conf(1.0)) == (-math.inf, math.inf)
    grid = np.linspace(-30, 30, 6001)
    slopes = np.diff([inv_conf(x) for x in grid]) / np.diff(grid)
    assert slopes.max() == pytest.approx(0.25, abs=1e-3)
    assert slopes.max() <= 0.25 + 1e-12  # rounding of the difference quotient
    assert conf(1e-6) - conf(1e-9) == pytest.approx(6.9, abs=0.01)


def brute(joint: dict[tuple, float], heard: list[Heard], row: int, known: dict[int, object]) -> dict[object, float]:
    """Bayes' rule without logarithms."""
    found: dict[object, float] = {}
    for database, chance in joint.items():
        if all(database[i] == value for i, value in known.items()):
            away = [item.answer - sum(item.term(i, v) for i, v in enumerate(database)) for item in heard]
            told = math.prod(item.noise.pmf(z) for item, z in zip(heard, away, strict=True))
            found[database[row]] = found.get(database[row], 0) + chance * told
    whole = sum(found.values())
    return {value: chance / whole for value, chance in found.items()}


@pytest.mark.parametrize("informed", [True, False])
def test_the_posterior_is_Bayes_rule_S0_3(informed) -> None:
    """S0.3: for n <= 4 rows of |D| <= 4 values, several answers, to 1e-10; informed or not."""
    rng = np.random.default_rng(3)
    for rows, size in ((2, 4), (3, 3), (4, 2)):
        priors = [dict(enumerate(p)) for p in rng.dirichlet(np.ones(size), rows)]
        joint = independent(priors)
        assert math.fsum(joint.values()) == pytest.approx(1)
        heard = [
            Heard(dict(enumerate(rng.integers(0, 3, size).tolist())), law, int(rng.integers(-2, 9)))
            for law in (GEOMETRIC, GaussianLaw(Fraction(2)), GEOMETRIC)
        ]
        heard.append(Heard([dict(enumerate(rng.integers(0, 2, size).tolist())) for _ in range(rows)], GEOMETRIC, 1))
        known = dict.fromkeys(range(1, rows), 0) if informed else {}
        found = posterior(joint, heard, 0, others=known)
        assert found == pytest.approx(brute(joint, heard, 0, known), abs=1e-10)


def test_independent_others_add_nothing_and_trap_10_dependent_ones_do_S0_3() -> None:
    """S0.3, trap 10: geometric noise at epsilon .7: independent rows .7000, n = 4 rows that are all alike 2.80.

    The guarantee is about rows that are independent in the adversary's eyes; a family counts as a group.
    """
    rows, counts = 4, {0: 0, 1: 1}
    prior = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    uninformed, informed = [], []
    for answer in range(-40, 45):
        heard = [Heard(counts, GEOMETRIC, answer)]
        after = posterior(independent([prior] * rows), heard, 0)
        uninformed.append(shift(prior, after, is_one, two_sided=True))
        after = posterior(independent([prior] * rows), heard, 0, others={1: 0, 2: 1, 3: 0})
        informed.append(shift(prior, after, is_one, two_sided=True))
    assert max(uninformed) == pytest.approx(0.7, abs=1e-3)
    assert max(uninformed) <= max(informed) + 1e-12
    assert max(informed) == pytest.approx(0.7, abs=1e-9)
    alike = {(0,) * rows: 0.5, (1,) * rows: 0.5}
    shifts = [
        shift(prior, posterior(alike, [Heard(counts, GEOMETRIC, answer)], 0), is_one, two_sided=True)
        for answer in range(-40, 45)
    ]
    assert max(shifts) == pytest.approx(2.8, abs=1e-3)


def test_the_steps_add_up_to_the_shift_S0_22() -> None:
    """S0.22, S1.7: telescoping over adaptive answers to 1e-9, for a property of several values of a row."""
    rng = np.random.default_rng(4)
    prior = {value: Fraction(value + 1, 10) for value in range(4)}
    law = GaussianLaw(Fraction(3))

    def holds(value: object) -> bool:
        return value in (1, 3)

    tracker, heard = Tracker(prior, holds), []
    for _ in range(60):
        counts = dict(enumerate(rng.integers(0, 2, 4).tolist()))
        heard.append(Heard(counts, law, int(rng.integers(-8, 9))))
        tracker.hear_sum(counts, law, heard[-1].answer)
    direct = posterior(independent([prior]), heard, 0)
    assert math.fsum(tracker.steps) == pytest.approx(shift(prior, direct, holds), abs=1e-9)
    assert tracker.belief == pytest.approx(direct, abs=1e-12)
    assert len(tracker.steps) == 60


def test_odds_move_by_the_likelihood_ratio_S2_2() -> None:
    """S2.2: posterior odds are the prior odds times the ratio: at most e^epsilon; half the noise passes it."""
    prior = {0: 0.9, 1: 0.1}

    def largest(law: LaplaceLaw) -> float:
        moves = []
        for answer in range(-30, 31):
            tracker = Tracker(prior, is_one)
            moves.append(abs(tracker.hear_sum({0: 0, 1: 1}, law, answer)))
        return max(moves)

    assert largest(GEOMETRIC) == pytest.approx(0.7, abs=1e-12)
    assert largest(LaplaceLaw(GEOMETRIC.scale / 2)) > 0.7


def test_confidence_is_infinite_where_one_side_is_impossible() -> None:
    """Certainty is at the ends, and one-sided shifts have a sign (S0.4, S1.2)."""
    assert confidence({1: 1.0, 0: 0.0}, is_one) == math.inf
    fallen = shift({1: 0.5, 0: 0.5}, {1: 0.2, 0: 0.8}, is_one)
    assert fallen == pytest.approx(math.log(0.25))
    assert shift({1: 0.5, 0: 0.5}, {1: 0.2, 0: 0.8}, is_one, two_sided=True) == -fallen


def test_what_cannot_be_enumerated_is_refused() -> None:
    """Too many databases, or known rows the prior excludes."""
    prior = dict(enumerate([0.1] * 10))
    with pytest.raises(QuestionError):
        independent([prior] * 7)
    with pytest.raises(QuestionError):
        posterior({(0, 0): 1.0}, [], 0, others={1: 5})
