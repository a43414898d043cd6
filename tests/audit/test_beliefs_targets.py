"""Many properties at once."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.audit.beliefs import audit_targets, shift
from sulq.errors import QuestionError
from sulq.language.law import GaussianLaw


def test_no_property_of_four_bits_moves_farther_than_the_likelihoods_are_apart_S1_4() -> None:
    """S1.4: all 65,536 properties of 16 values: the worst is within ln(max/min), and is its own brute force."""
    rng = np.random.default_rng(5)
    prior = dict(enumerate(rng.dirichlet(np.ones(16)).tolist()))
    told = dict(enumerate(rng.uniform(0.5, 2.0, 16).tolist()))
    found = audit_targets(prior, told)
    assert found.largest <= found.bound + 1e-12
    assert found.safe(found.bound + 1e-9)
    after = {value: prior[value] * told[value] for value in prior}
    whole = sum(after.values())
    after = {value: chance / whole for value, chance in after.items()}
    held = set(found.values)
    assert shift(prior, after, lambda value: value in held, two_sided=True) == pytest.approx(found.largest)


def test_on_a_small_domain_the_worst_property_is_found_S1_4() -> None:
    """S1.4: against enumeration by hand on five values; two values reach the bound exactly."""
    rng = np.random.default_rng(6)
    prior = dict(enumerate(rng.dirichlet(np.ones(5)).tolist()))
    told = dict(enumerate(rng.uniform(0.1, 1.0, 5).tolist()))
    after = {value: prior[value] * told[value] for value in prior}
    whole = sum(after.values())
    after = {value: chance / whole for value, chance in after.items()}
    subsets = [set(s) for k in range(1, 5) for s in itertools.combinations(range(5), k)]
    worst = max(shift(prior, after, lambda v, s=s: v in s, two_sided=True) for s in subsets)
    assert audit_targets(prior, told).largest == pytest.approx(worst)
    two = audit_targets({0: 0.3, 1: 0.7}, {0: 0.2, 1: 0.5})
    assert two.largest == pytest.approx(two.bound)
    assert two.bound == pytest.approx(math.log(2.5))


def test_where_single_properties_are_safe_all_of_them_are_nearly_S1_4() -> None:
    """S1.4: over 2,000 walks, P[any property moves > 2 delta] is below P[a single value's does by > delta].

    Control: any property moves > delta far oftener than one does.
    """
    rng = np.random.default_rng(9)
    law, delta = GaussianLaw(Fraction(10)), 0.5
    prior = dict.fromkeys(range(4), 0.25)
    single = double = simple = 0
    trials = 2_000
    for _ in range(trials):
        logs = np.zeros(4)
        for _ in range(8):
            counts = rng.integers(0, 2, 4)
            answer = counts[1] + round(rng.normal(0, 10))
            logs += [math.log(law.pmf(int(answer - c))) for c in counts]
        told = dict(enumerate(np.exp(logs - logs.max()).tolist()))
        one = audit_targets(prior, told, [lambda value: value == 1]).largest
        every = audit_targets(prior, told).largest
        single, double, simple = single + (one > delta), double + (every > 2 * delta), simple + (every > delta)
    assert double <= single
    assert simple > 2 * single


def test_targets_may_be_named_and_certain_ones_do_not_count() -> None:
    """A property that all values have, or none, moves nothing; too many values are refused."""
    assert audit_targets({0: 0.5, 1: 0.5}, {0: 1.0, 1: 0.5}, [lambda _value: True]).largest == 0
    with pytest.raises(QuestionError):
        audit_targets(dict(enumerate([1 / 17] * 17)), dict.fromkeys(range(17), 1.0))
